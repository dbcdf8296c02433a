package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
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
	page   *template.Template
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
	n.page, err = template.ParseFS(web.FS(), "notme.html")
	return n, err
}

// notMeWords are what a page says: its title, its text and its button.
type notMeWords [3]string

// The states of the page, with their words in English and Chinese.
var (
	notMeAsks = [2]notMeWords{
		{"Didn't ask for this email?", "Someone entered your address. If it wasn't you, you can stop these emails for 7 days.", "It wasn't me: stop these emails"},
		{"这封邮件不是您要求的吗？", "有人输入了您的邮箱地址。如果不是您本人，您可以在 7 天内停止接收这类邮件。", "不是我：停止这类邮件"},
	}
	notMeStopped = [2]notMeWords{
		{"These emails are stopped", "Your address gets none of them for 7 days. If you want to sign in or sign up before that, undo this first.", "Undo"},
		{"已停止发送", "您的邮箱在 7 天内不会再收到这类邮件。如果您在此之前想要登录或注册，请先撤销。", "撤销"},
	}
	notMeUndone = [2]notMeWords{
		{"Undone", "Your address gets these emails again.", "Stop these emails"},
		{"已撤销", "您的邮箱又可以收到这类邮件了。", "停止这类邮件"},
	}
	notMeInvalid = [2]notMeWords{
		{"This link is not valid", "It has expired, or a part of it is missing. Open it from a newer email.", ""},
		{"链接无效", "链接已过期或不完整。请从较新的邮件中打开。", ""},
	}
	notMeFailed = [2]notMeWords{
		{"Try again in a minute", "Nothing was changed.", "Try again"},
		{"请稍后再试", "没有任何更改。", "重试"},
	}
)

const notMeUndo = "/undo"

// showNotMe shows the page and changes nothing, as programs that scan emails open links.
func (s *Server) showNotMe(c *fiber.Ctx) error {
	r := requestOf(c)
	if _, ok := s.openNotMe(r); !ok {
		return s.failNotMe(c, &problem{kind: notFound}, notMeInvalid, "")
	}
	stopped, err := s.saidNotMe(r.Mailbox)
	switch {
	case err != nil:
		return err
	case stopped:
		return s.writeNotMe(c, fiber.StatusOK, notMeStopped, notMeUndo)
	}
	return s.writeNotMe(c, fiber.StatusOK, notMeAsks, "")
}

// stopNotMe suppresses the mailbox of the link, and counts who caused the email.
func (s *Server) stopNotMe(c *fiber.Ctx) error {
	r := requestOf(c)
	send, ok := s.openNotMe(r)
	if !ok {
		return s.failNotMe(c, &problem{kind: notFound}, notMeInvalid, "")
	}
	visitor := "unknown"
	if key := network.Visitor(send.Client); key != "" {
		visitor = s.names.subject(key)
	}
	before, err := s.saidNotMe(r.Mailbox)
	if err == nil {
		err = s.with.Suppressions.Add(r.ctx, r.Mailbox, suppression.NotMe, "link; key "+send.Caller+", visitor "+visitor)
	}
	if err != nil {
		return s.failNotMe(c, problemOf(err), notMeFailed, "")
	}
	if !before {
		r.What, r.Reason = ledger.Suppression, string(suppression.NotMe)
		s.metrics.notMe.WithLabelValues(send.Caller).Inc()
		s.with.Log.LogAttrs(r.ctx, slog.LevelInfo, "a recipient did not ask for the email", slog.String("request_id", r.RequestID), slog.Any("mailbox", r.Mailbox),
			slog.String("key", send.Caller), slog.String("visitor", visitor), slog.String("template", send.Template))
	}
	return s.writeNotMe(c, fiber.StatusOK, notMeStopped, notMeUndo)
}

// undoNotMe takes back what stopNotMe did, and nothing that has another reason.
func (s *Server) undoNotMe(c *fiber.Ctx) error {
	r := requestOf(c)
	if _, ok := s.openNotMe(r); !ok {
		return s.failNotMe(c, &problem{kind: notFound}, notMeInvalid, "")
	}
	if err := s.with.Suppressions.Lift(r.ctx, r.Mailbox, suppression.NotMe); err != nil {
		return s.failNotMe(c, problemOf(err), notMeFailed, notMeUndo)
	}
	return s.writeNotMe(c, fiber.StatusOK, notMeUndone, "")
}

// openNotMe returns the send of the link, whose mailbox becomes that of the request.
func (s *Server) openNotMe(r *request) (send rules.Send, ok bool) {
	text, ok := s.with.NotMe.Open(r.c.Params("token"), s.with.Now())
	if !ok {
		return send, false
	}
	send, err := rules.ParseSend(text, s.with.Identity)
	if err == nil {
		r.Mailbox, err = address.Parse(send.Mailbox, s.with.Identity)
	}
	return send, err == nil
}

func (s *Server) saidNotMe(mailbox address.Address) (bool, error) {
	found, err := s.with.Suppressions.Find(mailbox)
	for _, e := range found {
		if e.Reason == suppression.NotMe {
			return true, nil
		}
	}
	return false, err
}

// failNotMe writes the page of a problem, and notes it for the log.
func (s *Server) failNotMe(c *fiber.Ctx, p *problem, words [2]notMeWords, below string) error {
	requestOf(c).note(p)
	return s.writeNotMe(c, p.kind.status, words, below)
}

// writeNotMe writes the page in the visitor's language. Its button leads to the link, or to what is below it.
func (s *Server) writeNotMe(c *fiber.Ctx, status int, words [2]notMeWords, below string) error {
	lang, said := "en", words[0]
	if strings.HasPrefix(strings.ToLower(c.Get("Accept-Language")), "zh") {
		lang, said = "zh", words[1]
	}
	var page bytes.Buffer
	err := s.notMe.page.Execute(&page, map[string]any{
		"Lang": lang, "Title": said[0], "Text": said[1], "Button": said[2], "Style": s.notMe.style, "Changed": c.Method() == fiber.MethodPost,
		"Action": notme.Path + c.Params("token") + below,
	})
	if err != nil {
		return fmt.Errorf("writing the page of a link: %w", err)
	}
	set(c, "Content-Security-Policy", s.notMe.policy)
	set(c, "Vary", "Accept-Language")
	isolate(c)
	c.Status(status)
	return respondRaw(c, "text/html; charset=utf-8", page.Bytes())
}
