package mailtest

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"
	"text/template"
)

//go:embed exim.conf
var eximConf string

// hostName is what the server calls itself, in its banner and in Received.
const hostName = "relay.mailtest.example"

// settings fill in exim.conf.
type settings struct {
	Dir              string
	UID, GID         int
	Host             string
	Port, SecurePort int
	User, Password   string // in base64, so that any can be written there
	LoginOnly        bool
	Refuse           []rule
}

// rule is a Refusal in Exim's words.
type rule struct {
	Refusal
	Verb string
}

// config is the text of exim.conf for a server that belongs to this user and
// keeps its files here.
func (s *Server) config(as account, port, securePort int) ([]byte, error) {
	encode := base64.StdEncoding.EncodeToString
	fill := settings{
		Dir: s.dir, UID: as.uid, GID: as.gid, Host: hostName,
		Port: port, SecurePort: securePort,
		User: encode([]byte(s.User)), Password: encode([]byte(s.Password)),
		LoginOnly: s.options.LoginOnly,
	}
	for _, refusal := range s.options.Refuse {
		verb := "deny"
		if strings.HasPrefix(refusal.Reply, "4") {
			verb = "defer"
		}
		fill.Refuse = append(fill.Refuse, rule{refusal, verb})
	}
	form, err := template.New("exim.conf").Delims("[[", "]]").Parse(eximConf)
	if err != nil {
		return nil, fmt.Errorf("reading the form of exim.conf: %w", err)
	}
	var text bytes.Buffer
	if err := form.Execute(&text, fill); err != nil {
		return nil, fmt.Errorf("filling in exim.conf: %w", err)
	}
	return text.Bytes(), nil
}
