package main

import "github.com/mailgate/mailgate/cmd/mailgate/config"

// reservedFiles are for other files than connections: the history, Redis, the log.
const reservedFiles = 1024

// connectionsWithin is how many connections may be open in a process that may open so many
// files, so that idle strangers do not use up the files of the history and the relays.
func connectionsWithin(c *config.Config, files int) int {
	others := reservedFiles + c.SMTPMaxConns*len(c.SMTPURL)
	return min(c.MaxConnections, max(files-others, files/4, 1))
}

func (p *program) warnOfFiles() {
	files := maxFiles()
	if most := connectionsWithin(p.config, files); most < p.config.MaxConnections {
		p.log.Warn("fewer connections than max_connections, as this process may not open more files; raise the limit of open files, such as LimitNOFILE in the unit",
			"max_connections", p.config.MaxConnections, "connections", most, "files", files)
	}
}
