package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// submissions compares emails through the SMTP door, from MAIL to the relay's 250 and back, with those over HTTP, and
// with Exim between the same client and relay. The emails are as long as those of POST /send-code, and each mailbox
// is a new one. It also measures refused recipients on one connection, and what idle connections take.
func submissions(b *bench) []row {
	relay := b.openSink()
	data, _ := b.newDataDir()
	http200 := b.startMailgate(relay.addr, data)
	overHTTP := b.openLoad(http200.addr, senders, sendCode(each), http.StatusOK)
	overHTTP.send(1)
	length := int(relay.octets.Load())
	door, doorAddr := b.startDoor(relay.addr)
	exim, eximAddr := b.startExim(relay)
	samples := alternate(*rounds,
		b.openMail(doorAddr, senders, length).on(door), overHTTP.on(http200),
		relay.delivered(b.openMail(eximAddr, senders, length), exim))
	b.openMail(doorAddr, senders, length).sendFrom(refusedFrom, known)
	refused := alternate(*rounds, b.openRefused(doorAddr).on(door))
	return []row{
		compare("admitted by SMTP", "sends/s", "over HTTP", rate, samples[0], samples[1], atLeast(0.6)),
		compare("admitted by SMTP, processor", "µs", "over HTTP", processor, samples[0], samples[1], bound{}),
		compare("admitted by SMTP", "sends/s", "Exim as a relay", rate, samples[0], samples[2], atLeast(1)),
		compareFixed("refused recipient, one connection", "recipients/s", "required", valuesOf(rate, refused[0]), 12_000, atLeast(1)),
		compareFixed("refused recipient, processor", "µs", "of 10,000/s", valuesOf(processor, refused[0]), 100, atMost(1)),
		compareFixed("memory of 100 idle SMTP connections", "MB", "required", b.idleSMTP(relay.addr), 2, atMost(1)),
	}
}

// refusedFrom is the first of the mailboxes that are refused.
const refusedFrom = 5_000_000

// sendFrom sends n emails, from that number on.
func (l *load) sendFrom(first, n int64) {
	l.next.Store(first)
	l.send(n)
}

func valuesOf(measure func(sample) float64, samples []sample) (all []float64) {
	for _, one := range samples {
		all = append(all, measure(one))
	}
	return all
}

// startDoor starts mailgate with its SMTP door.
func (b *bench) startDoor(relay string, settings ...string) (p *process, addr string) {
	data, _ := b.newDataDir()
	addr, _ = freeAddr()
	return b.startMailgate(relay, append(settings, data, "MAILGATE_SUBMISSION_LISTEN="+addr)...), addr
}

// openMail opens connections that each submit one email after another, with its commands one by one, as libraries do.
func (b *bench) openMail(addr string, connections, length int) *load {
	head := "From: Acme <no-reply@acme.example>\r\nSubject: Your code\r\nMessage-ID: <%d@acme.example>\r\n\r\n"
	body := strings.Repeat("This line is as long as those of most emails are, and says nothing.\r\n", 1+length/69)[:max(0, length-len(head))] + "\r\n.\r\n"
	l := b.openConnections(addr, connections, func(c *connection, n int64) error {
		for _, step := range []struct{ line, want string }{
			{"MAIL FROM:<no-reply@acme.example>\r\n", "250"}, {"RCPT TO:<" + mailbox(n) + ">\r\n", "250"}, {"DATA\r\n", "354"},
			{fmt.Sprintf(head, n) + body, "250"},
		} {
			if err := c.say(step.line, step.want); err != nil {
				return err
			}
		}
		return nil
	})
	l.signIn()
	return l
}

// openRefused opens a connection that names recipients who have just been sent an email.
func (b *bench) openRefused(addr string) *load {
	l := b.openConnections(addr, 1, func(c *connection, n int64) error {
		return c.say("RCPT TO:<"+mailbox(refusedFrom+among(known)(n))+">\r\n", "550 5.7.1 limit")
	})
	l.signIn()
	check(l.connections[0].say("MAIL FROM:<no-reply@acme.example>\r\n", "250"))
	return l
}

// signIn reads the greetings, and signs in where that is offered: to Exim it is not.
func (l *load) signIn() {
	for _, c := range l.connections {
		check(c.say("", "220"))
		check(c.say("EHLO bench.example\r\n", "250"))
		if strings.Contains(c.said, "AUTH") {
			check(c.say("AUTH PLAIN "+base64.StdEncoding.EncodeToString([]byte("\x00bench\x00"+apiKey))+"\r\n", "235"))
		}
	}
}

// say writes a text and reads the reply, which must begin so.
func (c *connection) say(text, want string) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	c.said = ""
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the reply of %s to %.20q: %w", c.RemoteAddr(), text, err)
		}
		if c.said += line; len(line) > 3 && line[3] == '-' {
			continue
		}
		if !strings.HasPrefix(line, want) {
			return fmt.Errorf("reply %q, want %s", c.said, want)
		}
		return nil
	}
}

// delivered is a side that ends when the sink has all emails, as a relay with a queue says 250 before.
func (s *sink) delivered(l *load, p *process) side {
	return func() sample {
		before, began := s.mails.Load(), time.Now()
		taken := l.run(*length, 1<<62)
		for s.mails.Load() < before+taken {
			if time.Since(began) > patience {
				check(fmt.Errorf("%s has not delivered %d emails", p.cmd, before+taken-s.mails.Load()))
			}
			time.Sleep(time.Millisecond)
		}
		return sample{rate: float64(taken) / time.Since(began).Seconds()}
	}
}

// eximConf is a relay for this machine, which sends on at once what it takes.
const eximConf = `
exim_path = DIR/exim
exim_user = UID
exim_group = UID
deliver_drop_privilege
keep_environment =
spool_directory = DIR/spool
pid_file_path = DIR/pid
log_file_path = DIR/log/%slog
notifier_socket =
primary_hostname = exim.bench.example
local_interfaces = 127.0.0.1
daemon_smtp_ports = PORT
host_lookup =
rfc1413_query_timeout = 0s
smtp_accept_max = 200
smtp_accept_max_per_connection = 0
smtp_accept_queue_per_connection = 0
queue_run_max = 16
tls_advertise_hosts =
acl_smtp_rcpt = all
begin acl
all:
  accept
begin routers
sink:
  driver = manualroute
  transport = sink
  route_list = * 127.0.0.1
  self = send
begin transports
sink:
  driver = smtp
  port = SINK
`

// startExim starts an Exim that relays to a sink. As root it runs as a user without rights, as which it delivers.
func (b *bench) startExim(to *sink) (p *process, addr string) {
	program := "/usr/sbin/exim4"
	dir := must(os.MkdirTemp("", "bench-exim-")) // not in b.dir, where that user may not go
	b.later(func() { os.RemoveAll(dir) })
	addr, port := freeAddr()
	uid, attributes := account()
	_, sinkPort, _ := strings.Cut(to.addr, ":")
	conf := strings.NewReplacer("DIR", dir, "UID", fmt.Sprint(uid), "PORT", port, "SINK", sinkPort).Replace(eximConf)
	check(os.WriteFile(filepath.Join(dir, "exim"), must(os.ReadFile(program)), 0o755)) // a copy is not set-user-ID
	check(os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o644))
	for _, name := range []string{"spool", "log"} {
		check(os.Mkdir(filepath.Join(dir, name), 0o700))
		check(os.Chown(filepath.Join(dir, name), uid, uid))
	}
	check(os.Chown(dir, uid, uid))
	cmd := exec.CommandContext(b.ctx, filepath.Join(dir, "exim"), "-C", filepath.Join(dir, "conf"), "-bdf")
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	return b.start(cmd, addr, listening), addr
}

// account is the user that Exim runs as.
func account() (uid int, attributes *syscall.SysProcAttr) {
	if os.Getuid() != 0 {
		return os.Getuid(), nil
	}
	const nobody = 65534
	return nobody, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// idleSMTP returns by how many megabytes 100 connections that are signed in make mailgate larger.
func (b *bench) idleSMTP(relay string) (grown []float64) {
	for range *rounds {
		p, addr := b.startDoor(relay, "MAILGATE_SUBMISSION_MAX_CONNECTIONS=200") // of which a key may have half
		time.Sleep(time.Second)
		before := p.memory()
		b.openMail(addr, 100, 0)
		time.Sleep(time.Second) // what is measured is the state after this time
		grown = append(grown, p.memory()-before)
		p.stop()
	}
	return grown
}
