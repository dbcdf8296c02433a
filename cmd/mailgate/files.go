package main

import "github.com/mailgate/mailgate/cmd/mailgate/settings"

// filesBeside are left for what is no connection of a caller or to a relay: the history's
// files and those that it must find free, Redis, the log.
const filesBeside = 1024

// connectionsWithin is how many connections may be open in a process that may have so many
// files. Strangers who keep theirs silent would otherwise take the files that mails and the
// history need, long before one has to make room for the next.
func connectionsWithin(s *settings.Settings, files int) int {
	others := filesBeside + s.SMTPMaxConns*len(s.SMTPURL)
	return min(s.MaxConnections, max(files-others, files/4, 1))
}

// warnOfFiles says so where there can be fewer connections than were asked for.
func (p *program) warnOfFiles() {
	files := mostFiles()
	if most := connectionsWithin(p.settings, files); most < p.settings.MaxConnections {
		p.log.Warn("fewer connections are kept open than max_connections says, as this process may open no more files: raise its limit of open files, as with LimitNOFILE in the unit",
			"max_connections", p.settings.MaxConnections, "connections", most, "files", files)
	}
}
