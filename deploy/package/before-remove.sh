#!/bin/sh
# Before a removal, and for a deb before the files of an upgrade are written, where nothing is to stop.
set -e
case "${1-}" in
remove | 0) if [ -d /run/systemd/system ]; then systemctl disable --now mailgate.service; fi ;;
esac
