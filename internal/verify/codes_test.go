package verify_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/internal/keyed"
	"github.com/mailgate/mailgate/internal/keyed/keyedtest"
	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/verify"
	"github.com/mailgate/mailgate/throttle"
	"github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/throttle/throttletest"
)

const (
	minute = int64(60_000)
	key    = "sixteen bytes of chance, or more"
)

var budget, _ = throttle.ParsePolicy("ten-minutes=5/10m,day=20/24h")

var alice = verify.Recipient{Mailbox: "alice@example.com", Address: "alice@example.com"}

// setting is Codes over real records.
type setting struct {
	t       *testing.T
	clock   *keyedtest.Clock
	store   keyed.Store
	guesses *throttle.Limiter
	codes   *verify.Codes
	log     bytes.Buffer
}

func newSetting(t *testing.T, clock *keyedtest.Clock, store keyed.Store) *setting {
	t.Helper()
	s := &setting{t: t, clock: clock, store: store, guesses: local.New(keyedtest.Table(t, clock), budget)}
	s.use(store, s.guesses)
	return s
}

// inMemory is a setting of this process alone.
func inMemory(t *testing.T) *setting {
	t.Helper()
	clock := &keyedtest.Clock{}
	return newSetting(t, clock, keyedtest.Local(t, clock))
}

// use makes the Codes over another store or limiter.
func (s *setting) use(store keyed.Store, guesses *throttle.Limiter) {
	s.t.Helper()
	s.codes = must.Get(verify.New(verify.Options{Store: store, Secret: []byte(key), Guesses: guesses, Log: slog.New(slog.NewTextHandler(&s.log, nil))}))(s.t)
}

// eachHome runs a test on both homes of codes.
func eachHome(t *testing.T, test func(t *testing.T, s *setting)) {
	keyedtest.EachHome(t, func(t *testing.T, clock *keyedtest.Clock, open func() keyed.Store) {
		test(t, newSetting(t, clock, open()))
	})
}

// issue issues a code. That two in one test are alike happens once in a million.
func (s *setting) issue(to verify.Recipient) string {
	s.t.Helper()
	return must.Get(s.codes.Issue(s.t.Context(), to))(s.t)
}

func (s *setting) expect(from verify.Recipient, typed string, want verify.Result, left int) verify.Outcome {
	s.t.Helper()
	o := must.Get(s.codes.Verify(s.t.Context(), from, typed))(s.t)
	if o.Result != want || o.GuessesLeft != left {
		s.t.Fatalf("result %v with %d left, want %v with %d", o.Result, o.GuessesLeft, want, left)
	}
	return o
}

// unavailable expects that a code is not answered, and returns the error.
func (s *setting) unavailable(typed string) {
	s.t.Helper()
	o, err := s.codes.Verify(s.t.Context(), alice, typed)
	if o.Result == verify.Correct || !errors.Is(err, throttle.ErrUnavailable) || strings.Contains(err.Error(), "alice") || strings.Contains(err.Error(), typed) {
		s.t.Fatalf("result %v, %v", o.Result, err)
	}
}

func (s *setting) expectLeft(want int) {
	s.t.Helper()
	v := must.Get(s.guesses.Peek(s.t.Context(), alice.Mailbox))(s.t)
	if left := v.Tiers[0].Remaining; left != want {
		s.t.Fatalf("%d guesses left, want %d", left, want)
	}
}

// another returns a code that differs in its first digit.
func another(code string) string {
	return string('0'+(code[0]-'0'+1)%10) + code[1:]
}

func TestVerify_RightCode_CorrectOnce(t *testing.T) {
	eachHome(t, func(t *testing.T, s *setting) {
		code, unsent := s.issue(alice), s.issue(alice)
		must.OK(t, s.codes.Revoke(t.Context(), alice, unsent, throttle.ID{}))
		s.expect(alice, another(code), verify.Incorrect, 4)
		s.expect(alice, unsent, verify.Incorrect, 3)
		s.expect(alice, " "+code[:3]+"-"+code[3:]+"\n", verify.Correct, 0)
		s.expect(alice, code, verify.Expired, 0)
		s.expectLeft(3)
		late := s.issue(alice)
		s.clock.Add(s.codes.Lifetime() + minute)
		s.expect(alice, late, verify.Expired, 0)
		if s.log.Len() > 0 {
			t.Errorf("the log says %q", &s.log)
		}
	})
}

// The guesses are the mailbox's: a new code adds none.
func TestVerify_GuessesSpent_NewCodeAddsNone(t *testing.T) {
	eachHome(t, func(t *testing.T, s *setting) {
		wrong := another(s.issue(alice))
		for left := 4; left >= 0; left-- {
			s.expect(alice, wrong, verify.Incorrect, left)
		}
		code := s.issue(alice)
		o := s.expect(alice, code, verify.Spent, 0) // even the right one is not looked at
		if o.Guesses.Limit != "ten-minutes" || o.Guesses.Wait < 9*minute || o.Guesses.Wait > 10*minute || o.Guesses.Allowed {
			t.Errorf("%s waits %d ms", o.Guesses.Limit, o.Guesses.Wait)
		}
		s.clock.Add(10 * minute)
		s.expect(alice, s.issue(alice), verify.Correct, 0)
	})
}

// A text that could not be right, and a guess at nothing, cost no guess.
func TestVerify_NothingToGuess_CostsNothing(t *testing.T) {
	s := inMemory(t)
	for range 6 {
		s.expect(alice, "123456", verify.Expired, 0)
	}
	s.issue(alice)
	if o, err := s.codes.Verify(t.Context(), alice, "12345x"); !errors.Is(err, verify.ErrCode) || o.Result == verify.Correct {
		t.Fatalf("result %v, %v", o.Result, err)
	}
	s.expectLeft(5)
}

// A code proves the address it was mailed to and the purpose it was mailed for, even where
// several are counted as one mailbox. A right one uses up all codes of the mailbox.
func TestVerify_AddressAndPurpose_AreBound(t *testing.T) {
	tagged, signUp := alice, alice
	tagged.Address, signUp.Purpose = "alice+shop@example.com", "sign-up"
	s := inMemory(t)
	plain, shop, joined := s.issue(alice), s.issue(tagged), s.issue(signUp)
	s.expect(tagged, plain, verify.Incorrect, 4)
	s.expect(alice, shop, verify.Incorrect, 3)
	s.expect(alice, joined, verify.Incorrect, 2)
	must.OK(t, s.codes.Revoke(t.Context(), alice, joined, throttle.ID{})) // it is none of alice's
	s.expect(signUp, joined, verify.Correct, 0)
	s.expect(alice, plain, verify.Expired, 0)
	bob := verify.Recipient{Mailbox: "bob@example.com", Address: alice.Address}
	s.expect(bob, plain, verify.Expired, 0)
}

// atOnce counts the results of 64 calls at once.
func (s *setting) atOnce(typed string) map[verify.Result]int {
	var done sync.WaitGroup
	var results [64]verify.Result
	start := make(chan struct{})
	for i := range results {
		done.Go(func() {
			<-start
			o, err := s.codes.Verify(s.t.Context(), alice, typed)
			if err != nil {
				s.t.Error(err)
			}
			results[i] = o.Result
		})
	}
	close(start)
	done.Wait()
	counts := map[verify.Result]int{}
	for _, result := range results {
		counts[result]++
	}
	return counts
}

// Of 64 guesses at once five are looked at.
func TestVerify_GuessingInParallel_FiveLookedAt(t *testing.T) {
	eachHome(t, func(t *testing.T, s *setting) {
		if r := s.atOnce(another(s.issue(alice))); r[verify.Incorrect] != 5 || r[verify.Spent] != 59 {
			t.Errorf("%v", r)
		}
	})
}

// The right code 64 times at once is right once, and costs no guess.
func TestVerify_RightInParallel_CorrectOnce(t *testing.T) {
	eachHome(t, func(t *testing.T, s *setting) {
		for range 5 {
			if r := s.atOnce(s.issue(alice)); r[verify.Correct] != 1 || r[verify.Incorrect] != 0 {
				t.Errorf("%v", r)
			}
			s.expectLeft(5)
		}
	})
}

var errBroken = errors.New("broken")

// faultyStore lets something happen after each step that it has taken.
type faultyStore struct {
	keyed.Store
	after func() error
}

func (f faultyStore) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	alone, err := f.Store.Update(ctx, key, step)
	return alone, errors.Join(err, f.after())
}

// Without an answer the guess stays charged, right or wrong.
func TestCodes_StoreFails_Unavailable(t *testing.T) {
	s := inMemory(t)
	code := s.issue(alice)
	s.use(faultyStore{s.store, func() error { return throttle.Unavailable("changing a record", errBroken) }}, s.guesses)
	s.unavailable(code)
	s.expectLeft(4)
	issued, err := s.codes.Issue(t.Context(), alice)
	if issued != "" {
		t.Error("a code was issued that may not be on record")
	}
	for call, err := range map[string]error{
		"issuing": err, "revoking": s.codes.Revoke(t.Context(), alice, code, throttle.ID{}),
	} {
		if !errors.Is(err, throttle.ErrUnavailable) || !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), call) || strings.Contains(err.Error(), "alice") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// Where guesses cannot be counted the code is not looked at.
func TestVerify_GuessesFail_CodeNotLookedAt(t *testing.T) {
	s := inMemory(t)
	code := s.issue(alice)
	ended, end := context.WithCancel(t.Context())
	end()
	if o, err := s.codes.Verify(ended, alice, code); o.Result == verify.Correct || !errors.Is(err, throttle.ErrUnavailable) {
		t.Errorf("result %v, %v", o.Result, err)
	}
	s.expect(alice, code, verify.Correct, 0)
}

func TestVerify_GuessNotGivenBack_StillCorrect(t *testing.T) {
	s := inMemory(t)
	code := s.issue(alice)
	guesses := &throttletest.Faulty{}
	guesses.Fail("release")
	s.use(s.store, guesses.Break(s.guesses))
	s.expect(alice, code, verify.Correct, 0)
	if log := s.log.String(); !strings.Contains(log, "connection refused") || strings.Contains(log, "alice") || strings.Contains(log, code) {
		t.Errorf("the log says %q", log)
	}
}

func TestVerify_CallerGone_GuessGivenBack(t *testing.T) {
	s := inMemory(t)
	code := s.issue(alice)
	ctx, cancel := context.WithCancel(t.Context())
	s.use(faultyStore{s.store, func() error { cancel(); return nil }}, s.guesses)
	if o, err := s.codes.Verify(ctx, alice, code); o.Result != verify.Correct || err != nil {
		t.Errorf("result %v, %v", o.Result, err)
	}
	s.expectLeft(5)
}

// A guess that was counted alone is one of as many budgets as there are nodes, so what all
// nodes know of is not answered for it.
func TestVerify_GuessCountedAlone_Unavailable(t *testing.T) {
	s := inMemory(t)
	s.use(s.store, (&throttletest.Faulty{Degraded: true}).Break(s.guesses))
	code := s.issue(alice)
	s.unavailable(another(code))
	s.unavailable(code)
	s.expectLeft(3)
}

func TestIssue_NoMailbox_Fails(t *testing.T) {
	if _, err := inMemory(t).codes.Issue(t.Context(), verify.Recipient{Address: "alice"}); !errors.Is(err, throttle.ErrKey) {
		t.Errorf("without a mailbox: %v", err)
	}
}

// noted is a note of a send.
func noted(whose, text string) verify.Note {
	return verify.Note{Send: throttle.NewID(), Whose: whose, Text: text, Life: 60 * minute}
}

func texts(notes []verify.Note) (all string) {
	for _, n := range notes {
		all += n.Text + " "
	}
	return all
}

// A right code returns the notes of all sends to its mailbox once, longer than the codes live, but for those of sends
// that were revoked. A caller's report returns the caller's.
func TestVerify_RightCode_ReturnsNotesOnce(t *testing.T) {
	eachHome(t, func(t *testing.T, s *setting) {
		ctx, tagged := t.Context(), alice
		tagged.Address, tagged.Purpose = "alice+x@example.com", "login"
		must.Get(s.codes.Issue(ctx, alice, noted("web", "first")))(t)
		s.clock.Add(s.codes.Lifetime() + minute)
		unsent := noted("web", "unsent")
		code := must.Get(s.codes.Issue(ctx, alice, unsent))(t)
		must.OK(t, s.codes.Revoke(ctx, alice, code, unsent.Send))
		must.OK(t, s.codes.Note(ctx, alice.Mailbox, noted("app", "own")))
		code = must.Get(s.codes.Issue(ctx, tagged, noted("web", "second")))(t)
		if o := s.expect(tagged, another(code), verify.Incorrect, 4); len(o.Notes) != 0 {
			t.Errorf("a wrong code returns %s", texts(o.Notes))
		}
		if got := texts(must.Get(s.codes.Report(ctx, alice.Mailbox, "app"))(t)); got != "own " {
			t.Errorf("a report returns %s", got)
		}
		if o := s.expect(tagged, code, verify.Correct, 0); texts(o.Notes) != "first second " {
			t.Errorf("a right code returns %s", texts(o.Notes))
		}
		if o := s.expect(alice, s.issue(alice), verify.Correct, 0); len(o.Notes) != 0 {
			t.Errorf("the next one returns %s", texts(o.Notes))
		}
		must.Get(s.codes.Issue(ctx, alice, noted("web", "late")))(t)
		s.clock.Add(61 * minute)
		if o := s.expect(alice, s.issue(alice), verify.Correct, 0); len(o.Notes) != 0 {
			t.Errorf("after an hour a right code returns %s", texts(o.Notes))
		}
	})
}

// unwritten fails to write what comes of a step.
type unwritten struct{ keyed.Store }

func (u unwritten) Update(ctx context.Context, key string, step keyed.Step) (bool, error) {
	_, err := u.Store.Update(ctx, key, func(old []byte, now int64) ([]byte, int64) {
		step(old, now)
		return old, 1 << 60
	})
	return false, throttle.Unavailable("changing a record", errors.Join(err, errBroken))
}

// Where the code stays valid its notes stay, too: returned twice they would widen a limit twice. Where it is used up
// they are returned, also with an error.
func TestVerify_Fails_NotesReturnedOnce(t *testing.T) {
	s := inMemory(t)
	healthy, ctx := s.codes, t.Context()
	must.OK(t, healthy.Note(ctx, alice.Mailbox, noted("app", "own")))
	code := must.Get(healthy.Issue(ctx, alice, noted("web", "first")))(t)
	s.use(unwritten{s.store}, s.guesses)
	if o, err := s.codes.Verify(ctx, alice, code); !errors.Is(err, errBroken) || len(o.Notes) > 0 {
		t.Errorf("a check that fails returns %q, %v", texts(o.Notes), err)
	}
	if notes, err := s.codes.Report(ctx, alice.Mailbox, "app"); !errors.Is(err, errBroken) || len(notes) > 0 {
		t.Errorf("a report that fails returns %q, %v", texts(notes), err)
	}
	s.use(s.store, (&throttletest.Faulty{Degraded: true}).Break(s.guesses))
	if o, err := s.codes.Verify(ctx, alice, code); err == nil || texts(o.Notes) != "first own " && texts(o.Notes) != "own first " {
		t.Errorf("a code that is used up returns %q, %v", texts(o.Notes), err)
	}
}
