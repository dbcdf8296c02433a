package message_test

import (
	"bytes"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
	"github.com/mailgate/mailgate/mailer/message"
)

// newComposer has the built-in templates, and its own if there are any.
func newComposer(t testing.TB, from string, own fs.FS, hooks ...string) *message.Composer {
	t.Helper()
	return must.Get(message.NewComposer(must.Get(message.ParseSender(from))(t), must.Get(message.LoadTemplates(own, "en", hooks...))(t)))(t)
}

// readBack is an email as a reader's program sees it.
type readBack struct {
	header     mail.Header
	text, html string
}

// read parses an email with the standard library and fails unless it is what
// every email must be.
func read(t testing.TB, made message.Message) readBack {
	t.Helper()
	checkLines(t, made.Bytes)
	parsed := must.Get(mail.ReadMessage(bytes.NewReader(made.Bytes)))(t)
	kind, params, err := mime.ParseMediaType(parsed.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("Content-Type %q, %v", kind, err)
	}
	back := readBack{header: parsed.Header}
	parts := multipart.NewReader(parsed.Body, params["boundary"])
	for _, want := range []struct {
		kind string
		into *string
	}{{"text/plain", &back.text}, {"text/html", &back.html}} {
		part, err := parts.NextRawPart()
		if err != nil {
			t.Fatalf("the %s part: %v", want.kind, err)
		}
		kind, params, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil || kind != want.kind || !strings.EqualFold(params["charset"], "utf-8") {
			t.Fatalf("a part is %q %v, %v; want %s", kind, params, err, want.kind)
		}
		if encoding := part.Header.Get("Content-Transfer-Encoding"); encoding != "quoted-printable" {
			t.Fatalf("a part is encoded as %q", encoding)
		}
		decoded := must.Get(io.ReadAll(quotedprintable.NewReader(part)))(t)
		*want.into = strings.ReplaceAll(string(decoded), "\r\n", "\n")
	}
	if _, err := parts.NextRawPart(); err != io.EOF {
		t.Fatalf("a third part: %v", err)
	}
	return back
}

// checkLines holds the octets of an email to RFC 5322 and the fixed header block.
func checkLines(t testing.TB, text []byte) {
	t.Helper()
	if !bytes.HasSuffix(text, []byte("\r\n")) {
		t.Fatal("the last line has no end")
	}
	for line := range strings.SplitSeq(string(text), "\r\n") {
		if len(line) > 998 || regexp.MustCompile(`[^\t -~]`).MatchString(line) {
			t.Fatalf("a line that may not be there: %q", line)
		}
	}
	head, _, _ := strings.Cut(string(text), "\r\n\r\n")
	var names []string
	for line := range strings.SplitSeq(head, "\r\n") {
		if !strings.HasPrefix(line, " ") {
			name, _, _ := strings.Cut(line, ":")
			names = append(names, name)
		}
	}
	const want = "Date From To Subject Message-ID Auto-Submitted X-Auto-Response-Suppress MIME-Version Content-Type"
	if got := strings.Join(names, " "); got != want {
		t.Fatalf("headers: %s\n   want: %s", got, want)
	}
}

func subjectOf(t testing.TB, back readBack) string {
	t.Helper()
	return must.Get(new(mime.WordDecoder).DecodeHeader(back.header.Get("Subject")))(t)
}

var update = flag.Bool("update", false, "write the golden mails instead of comparing")

// asGolden is an email with the same in place of what is random in it.
func asGolden(mail []byte) []byte {
	_, boundary, _ := bytes.Cut(mail, []byte("boundary="))
	boundary, _, _ = bytes.Cut(boundary, []byte("\r\n"))
	return bytes.ReplaceAll(mail, boundary, []byte("BOUNDARY"))
}

// Nothing in the built-in emails is fetched, and they link nowhere.
var remote = regexp.MustCompile(`//|url\(|@import|<(img|link|script)|href|src=`)

func TestCompose_EachTemplate_IsTheGoldenMail(t *testing.T) {
	tests := []struct {
		file, from, locale string
		expiresInMS        int64
	}{
		{"code_en", "Acme <no-reply@acme.example>", "en", 600_000},
		{"code_zh", "阿克米 <no-reply@acme.example>", "zh", 600_000},
		{"code_bare", "no-reply@acme.example", "", 0},
	}
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			request := sampleRequest(t)
			request.Locale, request.ExpiresInMS = test.locale, test.expiresInMS
			made := must.Get(newComposer(t, test.from, nil).Compose(request))(t)
			back := read(t, made)
			if found := remote.FindString(back.html); found != "" {
				t.Errorf("the HTML has %q", found)
			}
			if made.From.String() != "no-reply@acme.example" || made.To.String() != "Alice@example.com" || made.ID != back.header.Get("Message-Id") {
				t.Errorf("%s goes from %s to %s, its header says %s", made.ID, made.From, made.To, back.header.Get("Message-Id"))
			}
			got := asGolden(made.Bytes)
			path := "testdata/" + test.file + ".eml"
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := must.Get(os.ReadFile(path))(t); !bytes.Equal(got, want) {
				t.Errorf("the email differs from %s:\n%s", path, got)
			}
		})
	}
}

// What a Composer keeps from one email to the next changes no octet: each email is the one that a
// new Composer makes, wherever the code and the address move the ends of lines.
func TestCompose_SecondEmail_SameAsFirst(t *testing.T) {
	own := files("own/en/subject.txt", "{{.Email}}: {{.Code}}", "own/en/text.txt", "{{.Code}}",
		"own/en/body.html", "<p>{{.Code}}", "own/en/expires.txt", "{{.Count}}")
	for name, text := range map[string]string{
		"in a line":     "Ü {{.Code}} and {{.Email}} {{.ExpiresIn}}",
		"often":         strings.Repeat("{{.Code}}={{.Email}} ", 9) + " \n\t\n{{.Code}} ",
		"at a fold":     strings.Repeat("x", 66) + "{{.Code}}" + strings.Repeat("é", 20) + "{{.Code}}",
		"in a branch":   `{{if gt (len .Code) 5}}long{{end}}{{if eq .Email "a@b.example"}}a{{end}} {{.Code}}`,
		"in a link":     `<a href="https://acme.example/?to={{.Email}}&code={{.Code}}">{{.Code}}</a>`,
		"in attributes": `<b title={{.Email}} style="x:{{.Email}};y:{{.Code}}" onclick="f({{.Code}},'{{.Email}}')">`,
		"in a script":   `<script>f({{.Email}}, {{.Code}}, {{.}})</script>`,
		"as a whole":    "{{.}}",
		"built in":      string(must.Get(os.ReadFile("templates/code/zh/body.html"))(t)),
	} {
		own["own/en/text.txt"].Data = []byte(text + "{{.Code}}")
		own["own/en/body.html"].Data = []byte(text + "<p>{{.Code}}")
		kept := newComposer(t, "Acme <no-reply@acme.example>", own)
		recipients := []string{"Alice@example.com", "a@b.example", "some_one.with-a.name@a-rather.long.example.com", "a+b@c.example", "a|b@c.example", "a@bücher.example"}
		for i, code := range []string{"123456", "1234", "expression", "expression1", "12345", "1mozBinding2", "abcDEF7", "12345678", "123456789", "1234567890", "12345678901", "ABCDEF012345"} {
			request := sampleRequest(t)
			request.Template, request.Code, request.To = "own", code, parse(t, recipients[i%len(recipients)])
			first := must.Get(newComposer(t, "Acme <no-reply@acme.example>", own).Compose(request))(t)
			later := must.Get(kept.Compose(request))(t)
			if !bytes.Equal(asGolden(first.Bytes), asGolden(later.Bytes)) {
				t.Errorf("%s, %s to %s: %s\nafter others:\n%s", name, code, request.To, first.Bytes, later.Bytes)
			}
		}
	}
}

// The reader of an email knows its boundary, and may choose a value of the next one.
func TestCompose_BoundaryOfAnotherEmail_EndsNoPart(t *testing.T) {
	composer := newComposer(t, "Acme <no-reply@acme.example>",
		own("Hello", "{{.Data.device}}\n{{.Email}}\n{{.Code}}", "<p>\n{{.Data.device}}\n{{.Code}}"))
	request := sampleRequest(t)
	request.Template, request.Data = "own", map[string]string{"device": "a phone"}
	_, after, _ := bytes.Cut(must.Get(composer.Compose(request))(t).Bytes, []byte("boundary="))
	boundary, _, _ := strings.Cut(string(after), "\r\n")
	for _, device := range []string{"--" + boundary, "--" + boundary + "--"} {
		request.To, request.Data = parse(t, "--"+boundary+"@example.com"), map[string]string{"device": device}
		back := read(t, must.Get(composer.Compose(request))(t))
		if want := device + "\n--" + boundary + "@example.com\n123456"; back.text != want || back.html != "<p>\n"+device+"\n123456" {
			t.Errorf("%q and %q, want %q", back.text, back.html, want)
		}
	}
}

// Many goroutines share a Composer; no two emails share a Message-ID or mix.
func TestCompose_Concurrent_NothingMixed(t *testing.T) {
	composer := newComposer(t, "Acme <no-reply@acme.example>", nil)
	var group sync.WaitGroup
	var seen sync.Map
	for worker := range 8 {
		group.Go(func() {
			request := sampleRequest(t)
			request.Code = fmt.Sprintf("%06d", worker)
			request.Locale = []string{"en", "zh"}[worker%2]
			for range 20 {
				request.ID = rand.Text()
				made, err := composer.Compose(request)
				if err != nil {
					t.Error(err)
					return
				}
				if _, twice := seen.LoadOrStore(made.ID, true); twice {
					t.Errorf("%s came twice", made.ID)
				}
				if !bytes.Contains(made.Bytes, []byte("\r\n    "+request.Code+"\r\n")) {
					t.Errorf("worker %d got another's email", worker)
				}
			}
		})
	}
	group.Wait()
}

func ExampleComposer() {
	from, _ := message.ParseSender("Acme <no-reply@acme.example>")
	templates, _ := message.LoadTemplates(nil, "en")
	composer, _ := message.NewComposer(from, templates)
	to, _ := address.Parse("alice@example.com", address.Identity{})
	made, err := composer.Compose(message.Request{
		To: to, Code: "123456", ExpiresInMS: 600_000, ID: "send-1", NowMS: 1795176000000,
	})
	head, _, _ := strings.Cut(string(made.Bytes), "\r\nMessage-ID")
	fmt.Println(strings.ReplaceAll(head, "\r\n", "\n"), err)
	// Output:
	// Date: Fri, 20 Nov 2026 12:00:00 +0000
	// From: Acme <no-reply@acme.example>
	// To: <alice@example.com>
	// Subject: 123456 is your code <nil>
}

func parse(t testing.TB, text string) address.Address {
	t.Helper()
	return must.Get(address.Parse(text, address.Identity{}))(t)
}

func sampleRequest(t testing.TB) message.Request {
	t.Helper()
	return message.Request{
		To:          parse(t, "Alice@example.com"),
		Locale:      "en",
		Code:        "123456",
		ExpiresInMS: 600_000,
		ID:          "01jd5x8f4m2q",
		NowMS:       1795176000000,
	}
}
