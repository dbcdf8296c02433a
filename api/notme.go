package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/ledger"
	"github.com/mailgate/mailgate/internal/network"
	"github.com/mailgate/mailgate/internal/notme"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/suppression"
	"github.com/mailgate/mailgate/throttle/rules"
)

// notMe is the page of the link {{.NotMe}} in an email, by which a recipient says that they did not ask for it.
type notMe struct {
	pages  map[string]*template.Template // by language
	style  template.CSS
	policy string
}

func newNotMe() (n notMe, err error) {
	style, err := fs.ReadFile(web.FS(), "notme.css")
	if err != nil {
		return n, err
	}
	n.style = template.CSS(style)
	hash := sha256.Sum256(style)
	n.policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	n.pages = map[string]*template.Template{}
	for _, language := range []string{"en", "zh"} {
		if n.pages[language], err = template.ParseFS(web.FS(), "notme.html", "notme_"+language+".html"); err != nil {
			return n, err
		}
	}
	return n, nil
}

// notMeState is what the page says, as its texts name it.
type notMeState string

const (
	notMeAsks    notMeState = "asks"
	notMeStopped notMeState = "stopped"
	notMeUndone  notMeState = "undone"
	notMeInvalid notMeState = "invalid"
	notMeFailed  notMeState = "failed"
)

const notMeUndo = "/undo"

// notMePage makes the handler of a route of the link. What do returns is what the page says.
func (s *Server) notMePage(do func(*request, *rules.Send) (notMeState, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r := requestOf(c)
		text, ok := s.with.NotMe.Open(c.Params("token"), s.with.Now())
		send, unread := s.readSend(r, text)
		if !ok || unread != nil {
			r.note(&problem{kind: notFound})
			return s.writeNotMe(c, fiber.StatusNotFound, notMeInvalid, "")
		}
		state, err := do(r, &send)
		switch {
		case err == nil:
			return s.writeNotMe(c, fiber.StatusOK, state, send.Template)
		case c.Method() != fiber.MethodPost: // there is no button that would repeat it
			return err
		}
		p := problemOf(err)
		r.note(p)
		return s.writeNotMe(c, p.kind.status, notMeFailed, send.Template)
	}
}

// showNotMe changes nothing, as programs that scan emails open links.
func (s *Server) showNotMe(r *request, _ *rules.Send) (notMeState, error) {
	stopped, err := s.saidNotMe(r.Mailbox)
	if stopped {
		return notMeStopped, err
	}
	return notMeAsks, err
}

// stopNotMe suppresses the mailbox of the link, and counts who caused the email.
func (s *Server) stopNotMe(r *request, send *rules.Send) (notMeState, error) {
	visitor := "unknown"
	if key := network.Visitor(send.Client); key != "" {
		visitor = s.names.subject(key)
	}
	before, err := s.saidNotMe(r.Mailbox)
	if err == nil {
		err = s.with.Suppressions.Add(r.ctx, r.Mailbox, suppression.NotMe, "link; key "+send.Caller+", visitor "+visitor)
	}
	if err == nil && !before {
		r.What, r.Reason = ledger.Suppression, string(suppression.NotMe)
		s.metrics.notMe.WithLabelValues(send.Caller).Inc()
		s.with.Log.LogAttrs(r.ctx, slog.LevelInfo, "a recipient did not ask for the email", slog.String("request_id", r.RequestID), slog.Any("mailbox", r.Mailbox),
			slog.String("key", send.Caller), slog.String("visitor", visitor), slog.String("template", send.Template))
	}
	return notMeStopped, err
}

// undoNotMe takes back what stopNotMe did, and nothing that has another reason.
func (s *Server) undoNotMe(r *request, _ *rules.Send) (notMeState, error) {
	return notMeUndone, s.with.Suppressions.Lift(r.ctx, r.Mailbox, suppression.NotMe)
}

func (s *Server) saidNotMe(mailbox address.Address) (bool, error) {
	found, err := s.with.Suppressions.Find(mailbox)
	return slices.ContainsFunc(found, func(e suppression.Entry) bool { return e.Reason == suppression.NotMe }), err
}

// writeNotMe writes the page in the visitor's language. Its button leads to the link, and where emails are stopped, to
// the undoing; one that failed is repeated. With a valid link, the page names the sender and the mailbox, masked, since
// others may see the link.
func (s *Server) writeNotMe(c *fiber.Ctx, status int, state notMeState, template string) error {
	r, language, action := requestOf(c), "en", notme.Path+c.Params("token")
	if strings.HasPrefix(strings.ToLower(c.Get("Accept-Language")), "zh") {
		language = "zh"
	}
	switch state {
	case notMeStopped:
		action += notMeUndo
	case notMeFailed:
		action = c.Path()
	}
	said := map[string]any{"State": state, "Style": s.notMe.style, "Changed": c.Method() == fiber.MethodPost, "Action": action}
	if !r.Mailbox.IsZero() {
		said["Mailbox"], said["Sender"] = r.Mailbox.Masked(), r.live.Composer.SenderOf(template)
	}
	var page bytes.Buffer
	if err := s.notMe.pages[language].Execute(&page, said); err != nil {
		return fmt.Errorf("writing the page of a link: %w", err)
	}
	set(c, "Content-Security-Policy", s.notMe.policy)
	set(c, "Vary", "Accept-Language")
	isolate(c)
	c.Status(status)
	return respondRaw(c, htmlType, page.Bytes())
}
