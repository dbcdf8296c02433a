package address_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/mailer/address"
)

// logKey is the key of the hashes in these tests.
var logKey [32]byte

func folding(t testing.TB) address.Identity {
	t.Helper()
	return must.Get(address.NewIdentity(true))(t).WithLogKey(logKey)
}

func parse(t testing.TB, text string) address.Address {
	t.Helper()
	return must.Get(address.Parse(text, folding(t)))(t)
}

// addressRow is one line of testdata/addresses.tsv.
type addressRow struct {
	line             int
	input, wire, key string
	refused          address.Reason
}

func addressRows(t testing.TB) (rows []addressRow) {
	t.Helper()
	text := string(must.Get(os.ReadFile("testdata/addresses.tsv"))(t))
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			t.Fatalf("addresses.tsv:%d has %d fields", i+1, len(fields))
		}
		row := addressRow{line: i + 1, input: must.Get(strconv.Unquote(fields[0]))(t), wire: fields[1], key: fields[2]}
		if reason, ok := strings.CutPrefix(fields[1], "refused:"); ok {
			row.wire, row.key, row.refused = "", "", address.Reason(reason)
		}
		rows = append(rows, row)
	}
	return rows
}

// Every reason is met by the table, and has a sentence of its own. Without folding the key is the
// wire form.
func TestParse_TableOfAddresses_AcceptedOrRefused(t *testing.T) {
	rows, identity := addressRows(t), folding(t)
	exact := must.Get(address.NewIdentity(false))(t)
	sentences := map[string]address.Reason{}
	if len(rows) < 500 {
		t.Fatalf("the table has only %d addresses", len(rows))
	}
	for _, row := range rows {
		got, err := address.Parse(row.input, identity)
		refusal, refused := errors.AsType[address.Reason](err)
		if refused {
			if other, ok := sentences[err.Error()]; err.Error() == "" || ok && other != refusal {
				t.Errorf("%s and %s share the sentence %q", other, refusal, err)
			}
			sentences[err.Error()] = refusal
		}
		switch {
		case refusal != row.refused:
			t.Errorf("line %d: %q: %q, %v; want refused: %s", row.line, row.input, got.String(), err, row.refused)
		case row.refused == "" && (err != nil || got.String() != row.wire || got.Key() != row.key):
			t.Errorf("line %d: %q: %q, key %q, %v; want %q, key %q",
				row.line, row.input, got.String(), got.Key(), err, row.wire, row.key)
		}
		unfolded, exactErr := address.Parse(row.input, exact)
		if exactErr != err || unfolded.String() != row.wire || unfolded.Key() != row.wire {
			t.Errorf("line %d: without folding %q, key %q, %v", row.line, unfolded.String(), unfolded.Key(), exactErr)
		}
	}
	if len(sentences) != 30 {
		t.Errorf("the table meets %d reasons, want all 30", len(sentences))
	}
}

func TestKey_SpellingsOfOneMailbox_Equal(t *testing.T) {
	tests := [][]string{
		{"J.Doe+1@Gmail.com", "jdoe@googlemail.com", "j.d.o.e@gmail.com", "JDOE+x+y@ｇｍａｉｌ.com"},
		{"a-b_c@proton.me", "abc@pm.me", "A.B.C+t@protonmail.ch"},
		{"x.y@yandex.ru", "x-y@ya.ru", "X.Y+1@narod.ru"},
		{"u+t@fastmail.com", "t@u.fastmail.com", "U@fastmail.com"},
		{"bob@sent.com", "m1@bob.sent.com", "m2@Bob.sent.com", "bob+3@sent.com"},
		{"bob@fastmail.co.uk", "m1@bob.fastmail.co.uk", "m2@bob.fastmail.co.uk"},
		{"tim@me.com", "tim@mac.com", "tim+1@icloud.com"},
		{"nick-one@yahoo.com", "nick-two@yahoo.com", "Nick@yahoo.com"},
		{"nick-one@yahoo.com.mx", "nick-two@yahoo.com.mx", "nick@yahoo.com.mx"},
		{"a@bücher.example", "A@xn--bcher-kva.example", "a+1@BÜCHER.example", "a@bu\u0308cher.example"},
	}
	for _, spellings := range tests {
		first := parse(t, spellings[0])
		for _, other := range spellings[1:] {
			if got := parse(t, other); got.Key() != first.Key() || got.Hash() != first.Hash() {
				t.Errorf("%q has the key %q, %q has %q", spellings[0], first.Key(), other, got.Key())
			}
		}
	}
}

func TestKey_OtherMailboxes_Differ(t *testing.T) {
	tests := [][2]string{
		{"a.b@example.com", "ab@example.com"},
		{"a-b@example.com", "a@example.com"},
		{"a@outlook.com", "a@hotmail.com"},
		{"a@fastmail.com", "a@fastmail.fm"},
		{"a@sent.com", "a@fastmail.com"},
		{"a@yahoo.com", "a@ymail.com"},
		{"a-b@yahoo.co.jp", "a@yahoo.co.jp"},
		{"t@u.fastmail.com", "t@fastmail.com"},
		{"paypal@paypal.com", "paypal@раураl.com"},
		{"a@faß.example", "a@fass.example"},
	}
	for _, pair := range tests {
		if a, b := parse(t, pair[0]), parse(t, pair[1]); a.Key() == b.Key() {
			t.Errorf("%q and %q share the key %q", pair[0], pair[1], a.Key())
		}
	}
}

// HTTP servers reuse a request's memory: an Address must not change with it.
func TestParse_ReusedInput_AddressUnchanged(t *testing.T) {
	for _, text := range []string{"alice@example.com", "Alice+x@Example.com", "a@bücher.example"} {
		lent := []byte(text)
		got := parse(t, unsafe.String(&lent[0], len(lent)))
		wire, key := strings.Clone(got.String()), strings.Clone(got.Key())
		for i := range lent {
			lent[i] = 'X'
		}
		if got.String() != wire || got.Key() != key {
			t.Errorf("%q became %q", wire, got.String())
		}
	}
}

func TestHash_InLogs_AddressNeverShown(t *testing.T) {
	got := parse(t, "Alice+secret@Example.com")
	if got := got.Hash(); got != "a27bd112ee" { // hmac-sha256(17 in 8 bytes and "alice@example.com"), the key 32 zero bytes
		t.Errorf("Hash() = %s", got)
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		logger := slog.New(handler)
		logger.Info("one", "to", got)
		logger.Info("many", "to", []address.Address{got}, "in", struct{ To *address.Address }{&got})
		logger.Info(fmt.Sprintf("%v %s %q %+v %#v %d %x", got, got, got, got, got, got, got))
		logger.Error(fmt.Errorf("sending to %v: broken", got).Error())
	}
	for _, part := range []string{"alice", "Alice", "secret", "xample", "616c696365", "416c696365"} {
		if strings.Contains(log.String(), part) {
			t.Errorf("the log shows %q:\n%s", part, log.String())
		}
	}
	if strings.Count(log.String(), got.Hash()) < 12 {
		t.Errorf("the log lacks the hash:\n%s", log.String())
	}
}

// Without the log key, a list of addresses cannot be matched against a log.
func TestHash_OtherOrNoKey_Differs(t *testing.T) {
	const email = "Alice+secret@Example.com"
	other := logKey
	other[0]++
	again := must.Get(address.Parse(email, folding(t).WithLogKey(other)))(t)
	if again.Hash() == parse(t, email).Hash() || len(again.Hash()) != 10 {
		t.Errorf("under another key: %s", again.Hash())
	}
	if plain := must.Get(address.Parse(email, address.Identity{}))(t); plain.Hash() != "unnamed" || fmt.Sprint(plain) != "unnamed" {
		t.Errorf("without a key: %s", plain)
	}
}

// Text that is too long is refused unread: ten megabytes must cost no more than a short
// address. The bound is loose, for slow machines.
func TestParse_HostileLength_RefusedUnread(t *testing.T) {
	const size = 10 << 20
	identity := folding(t)
	for _, unit := range []string{"a", "@", ".", "a.", "\"", "(", "ü", "\xff", "xn--", "a@b.", "+", "\u200b", "\r\n"} {
		text := strings.Repeat(unit, size/len(unit))
		quickest, err := time.Hour, error(nil)
		for range 3 { // a busy machine may stop one of them
			start := time.Now()
			_, err = address.Parse(text, identity)
			quickest = min(quickest, time.Since(start))
		}
		if quickest > 20*time.Millisecond {
			t.Errorf("10 MB of %q took %v", unit, quickest)
		}
		if err != address.Reason("too-long") {
			t.Errorf("10 MB of %q: %v", unit, err)
		}
	}
}

func ExampleParse() {
	identity, err := address.NewIdentity(true)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := address.Parse("John.Smith+news@GoogleMail.com", identity)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.String())
	fmt.Println(got.Key())
	fmt.Println(got) // as a log would show it that has no key for names
	// Output:
	// John.Smith+news@googlemail.com
	// johnsmith@gmail.com
	// unnamed
}

func TestDomain_Subdomains_RegisteredOne(t *testing.T) {
	for domain, want := range map[string]string{
		"example.com":                  "example.com",
		"mail.example.com":             "example.com",
		"A.b.C.Example.COM":            "example.com",
		"example.co.uk":                "example.co.uk",
		"mail.example.co.uk":           "example.co.uk",
		"s1.wilder.example":            "wilder.example", // a suffix that is on no list
		"mail.user.github.io":          "user.github.io", // whose users are strangers
		"co.uk":                        "co.uk",
		"github.io":                    "github.io",
		"s1.xn--bcher-kva.xn--p1ai":    "xn--bcher-kva.xn--p1ai",
		"tag.yahoo.co.jp":              "yahoo.co.jp",
		"mx.mail.city.kawasaki.jp":     "city.kawasaki.jp",
		"s1.sub.example.ex.not-listed": "ex.not-listed",
	} {
		if got := parse(t, "x@"+domain).Domain(); got != want {
			t.Errorf("%s was registered as %s, want %s", domain, got, want)
		}
	}
}

// dotString is RFC 5321's Dot-string "@" Domain, written down once more without
// the parser's help, for names of two labels or more that do not end in a
// number, and without the marks that route. A = with a ? after it is left to
// looksEncoded.
var dotString = regexp.MustCompile(`^[A-Za-z0-9#$&'*+/=?^_{|}~\x60-]+(\.[A-Za-z0-9#$&'*+/=?^_{|}~\x60-]+)*` +
	`@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

var endsInNumber = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)

var looksEncoded = regexp.MustCompile(`=.*\?`)

func FuzzParse(f *testing.F) {
	for _, row := range addressRows(f) {
		f.Add(row.input)
	}
	identity := folding(f)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := address.Parse(text, identity)
		if err != nil {
			if reason, ok := errors.AsType[address.Reason](err); !ok || reason.Error() == "" || !got.IsZero() || strictlyValid(text) {
				t.Fatalf("%q: %q, %#v", text, got.String(), err)
			}
			return
		}
		wire := got.String()
		local, _, _ := strings.Cut(wire, "@")
		typed, _, _ := strings.Cut(text, "@")
		if !dotString.MatchString(wire) || len(wire) > 254 || len(local) > 64 || local != typed || looksEncoded.MatchString(local) {
			t.Fatalf("%q went to the wire as %q", text, wire)
		}
		again, err := address.Parse(got.String(), identity)
		if err != nil || again != got {
			t.Fatalf("%q parsed again is %q, %v", got.String(), again.String(), err)
		}
		key, err := address.Parse(got.Key(), identity)
		if err != nil || key.Key() != got.Key() || key.String() != got.Key() {
			t.Fatalf("the key %q has the key %q, %v", got.Key(), key.Key(), err)
		}
		upper, err := address.Parse(strings.ToUpper(got.String()), identity)
		if err != nil || upper.Key() != got.Key() {
			t.Fatalf("%q in capitals has the key %q, %v, not %q", got.String(), upper.Key(), err, got.Key())
		}
	})
}

// strictlyValid reports whether the grammar alone is enough to know that text
// must be accepted: no punycode to judge, no reserved hyphens, no number last.
func strictlyValid(text string) bool {
	lower := strings.ToLower(text)
	local, domain, _ := strings.Cut(lower, "@")
	last := domain[strings.LastIndexByte(domain, '.')+1:]
	ascii := !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
	return dotString.MatchString(lower) && !looksEncoded.MatchString(local) && ascii && len(text) <= 254 && len(local) <= 64 &&
		!strings.Contains(domain, "--") && !endsInNumber.MatchString(last)
}

// A masked address does not show all of a local part, however short.
func TestMasked_ShowsFirstLetterAndDomain(t *testing.T) {
	for text, want := range map[string]string{
		"alice+x@Example.com": "a•••@example.com", "ab@example.com": "a•••@example.com", "a@example.com": "•••@example.com",
	} {
		a, err := address.Parse(text, address.Identity{})
		if err != nil || a.Masked() != want {
			t.Errorf("%s is masked as %s, not %s (%v)", text, a.Masked(), want, err)
		}
	}
}
