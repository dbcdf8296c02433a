package verify_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	"github.com/mailgate/mailgate/throttle"
	throttlelocal "github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
)

const (
	noon   = int64(1_800_000_000_000)
	minute = int64(60_000)
)

var alice = verify.Recipient{Mailbox: "alice@example.com", Address: "alice@example.com"}

// A setting is a desk with real stores, which a test may put something in front of.
type setting struct {
	t       testing.TB
	now     atomic.Int64
	book    verify.Book
	guesses throttle.Limiter
	log     bytes.Buffer
	desk    *verify.Desk
}

func newSetting(t testing.TB, arrange func(s *setting)) *setting {
	t.Helper()
	s := &setting{t: t}
	s.now.Store(noon)
	disk, err := cache.Open(cache.DiskOptions{Dir: cache.Memory})
	s.must(err)
	book, err := local.New(disk, local.Options{Size: cachetest.Small, Now: s.now.Load})
	s.must(err)
	guesses, err := throttlelocal.New(disk, throttlelocal.Options{Policy: verify.DefaultGuesses(), Size: cachetest.Small, Now: s.now.Load})
	s.must(err)
	t.Cleanup(func() {
		book.Close()
		guesses.Close()
		s.must(disk.Close())
	})
	s.book, s.guesses = book, guesses
	if arrange != nil {
		arrange(s)
	}
	s.desk, err = verify.NewDesk(verify.Options{
		Hasher: hasher(t, ourSecret), Book: s.book, Guesses: s.guesses,
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	s.must(err)
	return s
}

func (s *setting) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *setting) issue(to verify.Recipient) string {
	s.t.Helper()
	code, err := s.desk.Issue(context.Background(), to)
	s.must(err)
	return code
}

func (s *setting) expect(from verify.Recipient, typed string, want verify.Result, left int) verify.Outcome {
	s.t.Helper()
	o, err := s.desk.Verify(context.Background(), from, typed)
	s.must(err)
	if o.Result != want || o.AttemptsLeft != left {
		s.t.Fatalf("%v with %d left, want %v with %d", o.Result, o.AttemptsLeft, want, left)
	}
	return o
}

// left is how many guesses there are.
func (s *setting) left() int {
	s.t.Helper()
	v, err := s.guesses.Peek(context.Background(), alice.Mailbox)
	s.must(err)
	return v.Tiers()[0].Remaining
}

// another is a code that these are not.
func another(codes ...string) string {
	for _, wrong := range []string{"000000", "000001", "000002", "000003"} {
		if !strings.Contains(strings.Join(codes, " "), wrong) {
			return wrong
		}
	}
	panic("more codes than there are wrong ones")
}

func TestACodeIsVerified(t *testing.T) {
	s := newSetting(t, nil)
	code := s.issue(alice)
	s.expect(alice, another(code), verify.Incorrect, 4)
	s.expect(alice, another(code), verify.Incorrect, 3)
	s.expect(alice, " "+code[:3]+"-"+code[3:]+"\n", verify.Correct, 0)
	s.expect(alice, code, verify.Expired, 0)
	if left := s.left(); left != 3 {
		t.Errorf("%d guesses left, want the right one given back: 3", left)
	}
	if log := s.log.String(); log != "" {
		t.Errorf("the log says %q", log)
	}
}

// A code that was taken back is wrong, and takes no other along.
func TestACodeIsTakenBack(t *testing.T) {
	s := newSetting(t, nil)
	mailed, unsent := s.issue(alice), s.issue(alice)
	for unsent == mailed {
		unsent = s.issue(alice)
	}
	s.must(s.desk.TakeBack(context.Background(), alice, unsent))
	s.expect(alice, unsent, verify.Incorrect, 4)
	s.expect(alice, mailed, verify.Correct, 0)
	if err := s.desk.TakeBack(context.Background(), verify.Recipient{}, unsent); !errors.Is(err, throttle.ErrKey) {
		t.Errorf("of nobody: %v", err)
	}
}

// The guesses are the mailbox's: a new code brings no new ones, nor does forgetting.
func TestANewCodeBringsNoGuesses(t *testing.T) {
	s := newSetting(t, nil)
	wrong := another(s.issue(alice))
	for left := 4; left >= 0; left-- {
		s.now.Add(1000)
		s.expect(alice, wrong, verify.Incorrect, left)
	}
	o := s.expect(alice, wrong, verify.Spent, 0)
	if o.Guesses.Limit != "ten-minutes" || o.Guesses.Wait != 10*minute-4000 || o.Guesses.Allowed {
		t.Errorf("%s waits %d ms", o.Guesses.Limit, o.Guesses.Wait)
	}
	s.must(s.desk.Forget(context.Background(), alice.Mailbox))
	code := s.issue(alice)
	s.expect(alice, code, verify.Spent, 0) // even the right one: nobody has looked
	s.now.Add(10*minute - 4001)
	code = s.issue(alice)
	s.expect(alice, code, verify.Spent, 0)
	s.now.Add(1)
	s.expect(alice, code, verify.Correct, 0)
}

// How many are left is what the fullest tier leaves.
func TestTheDayIsABudgetToo(t *testing.T) {
	s := newSetting(t, nil)
	for guess := 1; guess <= 20; guess++ {
		want := min(4, 20-guess)
		s.expect(alice, another(s.issue(alice)), verify.Incorrect, want)
		s.now.Add(11 * minute)
	}
	if o := s.expect(alice, "000000", verify.Spent, 0); o.Guesses.Limit != "day" {
		t.Errorf("%s is full", o.Guesses.Limit)
	}
}

// What cannot be right whatever is on record, and what finds nothing on record, costs no
// guess.
func TestWhatCostsNoGuess(t *testing.T) {
	s := newSetting(t, nil)
	for range 10 {
		s.expect(alice, "123456", verify.Expired, 0)
	}
	code := s.issue(alice)
	for range 10 {
		o, err := s.desk.Verify(context.Background(), alice, "12345x")
		if !errors.Is(err, verify.ErrCode) || o.Result == verify.Correct {
			t.Fatalf("%v, %v", o.Result, err)
		}
	}
	s.now.Add(verify.DefaultLifetime)
	for range 10 {
		s.expect(alice, code, verify.Expired, 0)
	}
	if left := s.left(); left != 5 {
		t.Errorf("%d guesses left, want 5", left)
	}
}

// Two codes are on their way, and either is right: but once, and only for the address it
// went to, even where two addresses are counted as one mailbox.
func TestACodeProvesItsAddress(t *testing.T) {
	s := newSetting(t, nil)
	tagged := verify.Recipient{Mailbox: alice.Mailbox, Address: "alice+shop@example.com"}
	first, second := s.issue(alice), s.issue(tagged)
	for first == second {
		second = s.issue(tagged)
	}
	s.expect(tagged, first, verify.Incorrect, 4)
	s.expect(alice, second, verify.Incorrect, 3)
	s.expect(verify.Recipient{Mailbox: alice.Mailbox, Address: "ALICE+Shop@example.com"}, second, verify.Correct, 0)
	s.expect(alice, first, verify.Expired, 0)
	s.expect(verify.Recipient{Mailbox: "bob@example.com", Address: alice.Address}, first, verify.Expired, 0)
}

// A code is right for what it was mailed for, and for nothing else: the one kind of guess is
// as wrong as the other. Guesses are the mailbox's, and so are the codes that the right one
// uses up.
func TestACodeProvesItsPurpose(t *testing.T) {
	s := newSetting(t, nil)
	signUp, reset := alice, alice
	signUp.Purpose, reset.Purpose = "sign-up", "reset-password"
	plain, first, second := s.issue(alice), s.issue(signUp), s.issue(reset)
	for plain == first || first == second || second == plain {
		plain, first, second = s.issue(alice), s.issue(signUp), s.issue(reset)
	}
	s.expect(reset, first, verify.Incorrect, 4)
	s.expect(alice, first, verify.Incorrect, 3)
	s.expect(signUp, plain, verify.Incorrect, 2)
	s.must(s.desk.TakeBack(context.Background(), reset, first)) // it never was one
	s.must(s.desk.TakeBack(context.Background(), reset, second))
	s.expect(reset, second, verify.Incorrect, 1)
	s.expect(signUp, first, verify.Correct, 0)
	s.expect(alice, plain, verify.Expired, 0)
}

// counting is a book that counts how often a code was compared with one on record.
type counting struct {
	verify.Book
	compared atomic.Int64
}

func (c *counting) Check(ctx context.Context, mailbox string, h verify.Hash) (verify.Result, error) {
	result, err := c.Book.Check(ctx, mailbox, h)
	if result != verify.Expired {
		c.compared.Add(1)
	}
	return result, err
}

// 64 guess at once, each something else: five are compared and no more.
func TestGuessingInParallel(t *testing.T) {
	for range 20 {
		var book *counting
		s := newSetting(t, func(s *setting) {
			book = &counting{Book: s.book}
			s.book = book
		})
		code := s.issue(alice)
		results := s.atOnce(func(int) string { return another(code) })
		if results[verify.Incorrect] != 5 || results[verify.Spent] != 59 || book.compared.Load() != 5 {
			t.Fatalf("%v, %d compared", results, book.compared.Load())
		}
	}
}

// 64 bring the right code at once: one is told so. Guesses that are taken while others are
// about to be given back may find the budget empty for a moment; afterwards it is whole.
func TestVerifyingInParallel(t *testing.T) {
	for range 20 {
		s := newSetting(t, nil)
		code := s.issue(alice)
		results := s.atOnce(func(int) string { return code })
		if results[verify.Correct] != 1 || results[verify.Incorrect] != 0 {
			t.Fatalf("%v, want one correct", results)
		}
		if left := s.left(); left != 5 {
			t.Fatalf("%d guesses left, want 5", left)
		}
	}
}

// meanwhile is a book that does something else while it looks at a code.
type meanwhile struct {
	verify.Book
	do func()
}

func (m *meanwhile) Check(ctx context.Context, mailbox string, h verify.Hash) (verify.Result, error) {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.Book.Check(ctx, mailbox, h)
}

// The right code twice at once, on the last guess: the second finds that taken, and its
// wait ends with the first.
func TestTheLastGuessTwiceAtOnce(t *testing.T) {
	book := &meanwhile{}
	s := newSetting(t, func(s *setting) { book.Book, s.book = s.book, book })
	code := s.issue(alice)
	for left := 4; left > 0; left-- {
		s.expect(alice, another(code), verify.Incorrect, left)
	}
	book.do = func() { s.expect(alice, code, verify.Spent, 0) }
	s.expect(alice, code, verify.Correct, 0)
	if left := s.left(); left != 1 {
		t.Errorf("%d guesses left, want the last one given back", left)
	}
}

// 63 guess wrong and one brings the right code: no more than five of them are compared.
func TestGuessingBesideTheOwner(t *testing.T) {
	for range 20 {
		var book *counting
		s := newSetting(t, func(s *setting) {
			book = &counting{Book: s.book}
			s.book = book
		})
		code := s.issue(alice)
		results := s.atOnce(func(racer int) string {
			if racer == 7 {
				return code
			}
			return another(code)
		})
		compared := int(book.compared.Load())
		if compared > 5 || results[verify.Correct] > 1 || results[verify.Correct]+results[verify.Incorrect] != compared {
			t.Fatalf("%v, %d compared", results, compared)
		}
		if left := s.left(); left != 5-results[verify.Incorrect] {
			t.Fatalf("%d guesses left after %v", left, results)
		}
	}
}

func (s *setting) atOnce(typed func(racer int) string) map[verify.Result]int {
	var (
		done    sync.WaitGroup
		results [64]verify.Result
		ready   = make(chan struct{})
	)
	for racer := range results {
		done.Go(func() {
			<-ready
			o, err := s.desk.Verify(context.Background(), alice, typed(racer))
			if err != nil {
				s.t.Error(err)
			}
			results[racer] = o.Result
		})
	}
	close(ready)
	done.Wait()
	counts := map[verify.Result]int{}
	for _, result := range results {
		counts[result]++
	}
	return counts
}

var errBroken = errors.New("the store is broken")

// brokenBook fails after it has done what it was asked.
type brokenBook struct{ verify.Book }

func (b brokenBook) Check(ctx context.Context, mailbox string, h verify.Hash) (verify.Result, error) {
	_, _ = b.Book.Check(ctx, mailbox, h)
	return verify.Expired, errBroken
}

func (b brokenBook) Add(context.Context, string, verify.Hash, int64) error { return errBroken }
func (b brokenBook) Forget(context.Context, string) error                  { return errBroken }

// brokenLimiter fails at what it is set to fail at.
type brokenLimiter struct {
	throttle.Limiter
	take, release error
}

func (l brokenLimiter) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	if l.take != nil {
		return throttle.Verdict{Allowed: true}, l.take
	}
	return l.Limiter.Take(ctx, key, id)
}

func (l brokenLimiter) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	if l.release != nil {
		return false, l.release
	}
	return l.Limiter.Release(ctx, key, id)
}

// A book that fails gives no answer, and the guess stays spent.
func TestAFailingBook(t *testing.T) {
	s := newSetting(t, func(s *setting) { s.book = brokenBook{s.book} })
	ctx := context.Background()
	o, verified := s.desk.Verify(ctx, alice, "123456")
	if o.Result == verify.Correct || s.left() != 4 {
		t.Errorf("%v, and %d guesses left", o.Result, s.left())
	}
	code, issued := s.desk.Issue(ctx, alice)
	if code != "" {
		t.Error("a code that is not on record was handed out")
	}
	for call, err := range map[string]error{"verify": verified, "issue": issued, "forget": s.desk.Forget(ctx, alice.Mailbox)} {
		if !errors.Is(err, errBroken) || strings.Contains(err.Error(), "alice") || strings.Contains(err.Error(), "123456") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// A book says what was being done, and the desk does not say it once more.
func TestErrorsSayItOnce(t *testing.T) {
	s := newSetting(t, nil)
	s.book.(*local.Book).Close()
	ctx := context.Background()
	_, checking := s.desk.Verify(ctx, alice, "123456")
	for says, err := range map[string]error{"checking a code": checking, "forgetting codes": s.desk.Forget(ctx, alice.Mailbox)} {
		if err == nil || strings.Count(err.Error(), says) != 1 {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// Where guesses cannot be counted nobody looks at the code.
func TestAFailingBudget(t *testing.T) {
	var book *counting
	s := newSetting(t, func(s *setting) {
		book = &counting{Book: s.book}
		s.book, s.guesses = book, brokenLimiter{Limiter: s.guesses, take: errBroken}
	})
	o, err := s.desk.Verify(context.Background(), alice, s.issue(alice))
	if !errors.Is(err, errBroken) || o.Result == verify.Correct || book.compared.Load() != 0 {
		t.Errorf("%v, %v, %d compared", o.Result, err, book.compared.Load())
	}
}

// A right code is right even if its guess cannot be given back. The log is told, and not
// whose it was.
func TestAGuessThatIsNotGivenBack(t *testing.T) {
	s := newSetting(t, func(s *setting) { s.guesses = brokenLimiter{Limiter: s.guesses, release: errBroken} })
	code := s.issue(alice)
	s.expect(alice, code, verify.Correct, 0)
	if log := s.log.String(); !strings.Contains(log, errBroken.Error()) || strings.Contains(log, "alice") || strings.Contains(log, code) {
		t.Errorf("the log says %q", log)
	}
}

// hangUp is a book whose caller is gone as soon as the code was checked.
type hangUp struct {
	verify.Book
	cancel context.CancelFunc
}

func (h hangUp) Check(ctx context.Context, mailbox string, hash verify.Hash) (verify.Result, error) {
	defer h.cancel()
	return h.Book.Check(ctx, mailbox, hash)
}

func TestTheCallerHangsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := newSetting(t, func(s *setting) { s.book = hangUp{s.book, cancel} })
	o, err := s.desk.Verify(ctx, alice, s.issue(alice))
	if o.Result != verify.Correct || err != nil || s.left() != 5 {
		t.Errorf("%v, %v, %d guesses left", o.Result, err, s.left())
	}
}

// timed is a limiter that notes how long a release may take.
type timed struct {
	throttle.Limiter
	left time.Duration
}

func (l *timed) Release(ctx context.Context, key string, id throttle.ID) (bool, error) {
	end, _ := ctx.Deadline()
	l.left = time.Until(end)
	return l.Limiter.Release(ctx, key, id)
}

// A guess is given back for as long as is set, and for two seconds where nothing is.
func TestPatience(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{0: 2 * time.Second, time.Hour: time.Hour} {
		s := newSetting(t, nil)
		guesses := &timed{Limiter: s.guesses}
		desk, err := verify.NewDesk(verify.Options{Hasher: hasher(t, ourSecret), Book: s.book, Guesses: guesses, Patience: set})
		s.must(err)
		o, err := desk.Verify(context.Background(), alice, s.issue(alice))
		if o.Result != verify.Correct || err != nil || guesses.left > want || guesses.left < want/2 {
			t.Errorf("with %v: %v, %v, and %v to give the guess back", set, o.Result, err, guesses.left)
		}
	}
}

func TestDesksThatWillNotDo(t *testing.T) {
	s := newSetting(t, nil)
	whole := verify.Options{Hasher: hasher(t, ourSecret), Book: s.book, Guesses: brokenLimiter{Limiter: s.guesses, release: errBroken}}
	for name, spoil := range map[string]func(o *verify.Options){
		"no hasher":        func(o *verify.Options) { o.Hasher = nil },
		"no book":          func(o *verify.Options) { o.Book = nil },
		"no guesses":       func(o *verify.Options) { o.Guesses = nil },
		"a life backwards": func(o *verify.Options) { o.Lifetime = -1 },
		"a life too long":  func(o *verify.Options) { o.Lifetime = verify.MaxLifetime + 1 },
		"no patience":      func(o *verify.Options) { o.Patience = -1 },
	} {
		o := whole
		spoil(&o)
		if desk, err := verify.NewDesk(o); desk != nil || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	desk, err := verify.NewDesk(whole)
	s.must(err)
	if _, err := desk.Verify(context.Background(), alice, "123456"); err != nil { // and nobody hears of the guess
		t.Error(err)
	}
	whole.Random = iotest.ErrReader(errBroken)
	desk, err = verify.NewDesk(whole)
	s.must(err)
	if code, err := desk.Issue(context.Background(), alice); code != "" || !errors.Is(err, errBroken) {
		t.Errorf("a code without chance: %v", err)
	}
	if desk.Lifetime() != verify.DefaultLifetime {
		t.Errorf("codes live for %d ms", desk.Lifetime())
	}
}

func TestDefaultGuesses(t *testing.T) {
	if got := verify.DefaultGuesses().String(); got != "ten-minutes=5/10m,day=20/24h" {
		t.Error(got)
	}
}

// A lonely limiter counts what nobody else counts.
type lonely struct{ throttle.Limiter }

func (l lonely) Take(ctx context.Context, key string, id throttle.ID) (throttle.Verdict, error) {
	v, err := l.Limiter.Take(ctx, key, id)
	v.Degraded = true
	return v, err
}

// A book that cannot tell its own codes from those that others guess at is not asked for a
// guess that was counted alone: the right code gets the answer of a wrong one.
func TestAGuessThatWasCountedAlone(t *testing.T) {
	var book *counting
	s := newSetting(t, func(s *setting) {
		book = &counting{Book: s.book}
		s.book, s.guesses = book, lonely{s.guesses}
	})
	code := s.issue(alice)
	for _, typed := range []string{code, another(code)} {
		if o, err := s.desk.Verify(context.Background(), alice, typed); !errors.Is(err, verify.ErrUnavailable) || o.Result != verify.Expired {
			t.Errorf("%v, %v", o.Result, err)
		}
	}
	if compared := book.compared.Load(); compared != 0 || s.left() != 3 {
		t.Errorf("%d codes were compared, and %d guesses are left", compared, s.left())
	}
}

// A code is for an address.
func TestIssueForNoAddress(t *testing.T) {
	s := newSetting(t, nil)
	if code, err := s.desk.Issue(context.Background(), verify.Recipient{Mailbox: alice.Mailbox}); code != "" || !errors.Is(err, verify.ErrAddress) {
		t.Errorf("%q, %v", code, err)
	}
	s.expect(alice, "000000", verify.Expired, 0)
}

// doubtful is a book of which the others may have the next so many codes.
type doubtful struct {
	verify.Book
	left int
}

func (d *doubtful) Add(ctx context.Context, mailbox string, h verify.Hash, lifetime int64) error {
	if d.left--; d.left >= 0 {
		return verify.ErrMayBeRight
	}
	return d.Book.Add(ctx, mailbox, h, lifetime)
}

// A code that may be right elsewhere is not mailed: another is made, once.
func TestACodeThatMayBeRightElsewhere(t *testing.T) {
	random := bytes.NewReader([]byte{0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4})
	var book *doubtful
	s := newSetting(t, func(s *setting) {
		book = &doubtful{Book: s.book, left: 1}
		s.book = book
	})
	desk, err := verify.NewDesk(verify.Options{Hasher: hasher(t, ourSecret), Book: s.book, Guesses: s.guesses, Random: random})
	s.must(err)
	if code, err := desk.Issue(context.Background(), alice); err != nil || code != "000002" {
		t.Errorf("%q, %v", code, err)
	}
	book.left = 2
	if code, err := desk.Issue(context.Background(), alice); !errors.Is(err, verify.ErrMayBeRight) || code != "" {
		t.Errorf("%q, %v", code, err)
	}
}
