#!/bin/sh
# After an installation or an upgrade. A first installation does not start the service: its secrets are missing. That
# a mistake in the settings stops it is no reason to leave the package half installed: systemctl says why.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart mailgate.service || true
fi
