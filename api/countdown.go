package api

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofiber/fiber/v2"
	"github.com/mailgate/mailgate/api/web"
	"github.com/mailgate/mailgate/internal/report"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/throttle/rules"
	"github.com/valyala/fasthttp"
)

// countdownLife is how many milliseconds a token is valid, or until its wait is over.
const countdownLife = 24 * 60 * 60 * 1000

// showCountdown tells how long the next send like that of the token still has to wait.
func (s *Server) showCountdown(r *request, _ *none) (any, error) {
	text, ok := s.tokens.Open(r.c.Params("token"), s.with.Now())
	if !ok { // whatever is wrong with it
		return nil, &problem{kind: unknownCountdown}
	}
	send, err := s.readSend(r, text)
	if err != nil {
		return nil, fmt.Errorf("reading a countdown: %w", err)
	}
	decision, err := r.peek(send)
	if err != nil {
		return nil, err
	}
	return jsontext.Value(s.reportPeek(r, &decision).Remaining()), nil
}

// reportSend returns the report of a send to the mailbox of the request, with a token for its countdown. The token holds
// all that rules know of the send: which rules apply depends on more than the mailbox. Its holder can only learn how long
// the next such send has to wait.
func (s *Server) reportSend(r *request, send rules.Send, d *rules.Decision) *report.Report {
	rep := s.reportPeek(r, d)
	text := send.AppendText(make([]byte, 0, 320))
	rep.Countdown = s.tokens.Seal(string(text), s.with.Now()+max(countdownLife, rep.Wait))
	return rep
}

// reportPeek returns the report of a decision about the mailbox of the request.
func (s *Server) reportPeek(r *request, d *rules.Decision) *report.Report {
	return r.reports(report.Of(d, r.Mailbox.Hash(), s.names.subject, s.with.Now()))
}

// readSend reads the send in a token, whose mailbox becomes that of the request.
func (s *Server) readSend(r *request, text string) (send rules.Send, err error) {
	if send, err = rules.ParseSend(text); err == nil {
		r.Mailbox, err = address.Parse(send.Mailbox, s.with.Identity)
	}
	send.Mailbox = r.Mailbox.Key()
	return send, err
}

// scriptLife lets a browser use the script for an hour without a request. Its URL never changes, so
// after an upgrade a page may use the old script for that long.
const scriptLife = "public, max-age=3600"

// component makes the handler of a file of the countdown element, for pages of any origin.
func component(contentType, name string) fiber.Handler {
	type forms struct {
		plain, small []byte
		etag         string
	}
	made := sync.OnceValues(func() (forms, error) {
		text, err := fs.ReadFile(web.FS(), name)
		sum := sha256.Sum256(text)
		return forms{text, fasthttp.AppendGzipBytesLevel(nil, text, fasthttp.CompressBestCompression), base64.RawURLEncoding.EncodeToString(sum[:12])}, err
	})
	return func(c *fiber.Ctx) error {
		file, err := made()
		if err != nil {
			return err
		}
		body, etag := file.plain, file.etag
		set(c, "Vary", "Accept-Encoding")
		set(c, "Cache-Control", scriptLife)
		if c.AcceptsEncodings("identity", "gzip") == "gzip" {
			body, etag = file.small, etag+"-gzip"
			set(c, "Content-Encoding", "gzip")
		}
		c.Set("ETag", `"`+etag+`"`)
		if c.Fresh() {
			c.Response().Header.Del("Content-Encoding")
			c.Status(fiber.StatusNotModified)
			return nil
		}
		return respondRaw(c, contentType, body)
	}
}
