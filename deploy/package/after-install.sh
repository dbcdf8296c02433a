#!/bin/sh
# After an installation or an upgrade. A first installation does not start the service: its secrets are missing.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart mailgate.service
fi
