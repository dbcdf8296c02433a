package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
)

// listeners are what a program listens on; ops may be nil.
type listeners struct {
	main, ops net.Listener
	doors     []door
}

// door is an open address of the SMTP door.
type door struct {
	net.Listener
	config.Door
}

// open opens the addresses of the settings. The caller closes them, also after an error.
func (l *listeners) open(c *config.Config) (err error) {
	if l.main, err = listen(c, "listen", c.Listen); err != nil {
		return err
	}
	if c.OpsListen != "" {
		if l.ops, err = listen(c, "ops-listen", c.OpsListen); err != nil {
			return err
		}
	}
	for _, one := range c.SubmissionListen {
		opened, err := listen(c, "submission-listen", one.Addr)
		if err != nil {
			return err
		}
		l.doors = append(l.doors, door{opened, one})
	}
	return nil
}

// otherPorts is how many ports dev tries after a default one that is in use.
const otherPorts = 75

func listen(c *config.Config, setting, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	host, port, _ := net.SplitHostPort(address)
	first, _ := strconv.Atoi(port)
	for n := 1; err != nil && n <= otherPorts && c.IsDev() && !c.Given(setting); n++ {
		l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(first+n)))
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		err = operation.Err // without the address, which is in the sentence
	}
	if err != nil {
		return nil, c.Complain(setting, fmt.Sprintf("cannot listen on %s: %v", address, err))
	}
	return l, nil
}

// close closes those that are still open.
func (l *listeners) close() {
	for _, door := range l.doors {
		door.Close()
	}
	for _, one := range []net.Listener{l.main, l.ops} {
		if one != nil {
			one.Close()
		}
	}
}

// addresses lists those of the SMTP door.
func (l *listeners) addresses() string {
	var texts []string
	for _, one := range l.doors {
		texts = append(texts, one.Listener.Addr().String())
	}
	return strings.Join(texts, ",")
}
