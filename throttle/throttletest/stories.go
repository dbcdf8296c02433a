package throttletest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/throttle"
)

// story is a table of calls of one key, each at a time in milliseconds and with its answer:
//
//	time  take ID              a verdict, as spell writes it, or only its first words
//	time  peek                 the same
//	time  release ID           true or false
//	time  record ID@time ...
//	time  reset                how many sends were forgotten
//	time  history              ID@time of each send
//
// An ID is one letter, and ? a new one each time.
type story struct {
	name  string
	by    throttle.Algorithm
	steps string
}

// teller tells a story to a limiter.
type teller struct {
	key
	ids        map[string]throttle.ID
	admissions map[string]throttle.Admission
}

func (s story) tell(t *testing.T, open Open) {
	w := teller{newKey(t, open, s.by), map[string]throttle.ID{}, map[string]throttle.Admission{}}
	for line := range strings.Lines(s.steps) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		at, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		w.set(start + at)
		got, rest := w.call(words[1], words[2:])
		if want := strings.Join(rest, " "); got != want && !strings.HasPrefix(got, want+" ") {
			t.Fatalf("%s\n got %s", strings.TrimSpace(line), got)
		}
	}
}

// call makes one call, and returns its answer and what stands behind its arguments.
func (w teller) call(name string, words []string) (answer string, rest []string) {
	switch name {
	case "take":
		v := w.take(w.id(words[0]))
		if v.Allowed {
			w.admissions[words[0]] = throttle.Admission{ID: w.id(words[0]), At: v.At}
		}
		return spell(v), words[1:]
	case "peek":
		return spell(w.peek()), words
	case "release":
		a, known := w.admissions[words[0]]
		if !known {
			a = throttle.Admission{ID: w.id(words[0]), At: w.now()}
		}
		return fmt.Sprint(w.release(a)), words[1:]
	case "record":
		var all []throttle.Admission
		for _, word := range words {
			id, text, _ := strings.Cut(word, "@")
			at, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			w.admissions[id] = throttle.Admission{ID: w.id(id), At: start + at}
			all = append(all, w.admissions[id])
		}
		w.record(all...)
		return "", nil
	case "reset":
		return fmt.Sprint(w.reset()), words
	case "history":
		return w.spellHistory(), words
	}
	w.t.Fatalf("there is no call %q", name)
	return "", nil
}

func (w teller) id(letter string) throttle.ID {
	if _, known := w.ids[letter]; !known || letter == "?" {
		w.ids[letter] = throttle.NewID()
	}
	return w.ids[letter]
}

func (w teller) spellHistory() string {
	var all []string
	for _, a := range w.history() {
		for letter, id := range w.ids {
			if id == a.ID {
				all = append(all, fmt.Sprintf("%s@%d", letter, a.At-start))
			}
		}
	}
	return strings.Join(all, " ")
}

// stories are what every limiter promises, case by case.
func stories(t *testing.T) []story {
	usual := throttle.DefaultPolicy()
	two := Policy(t, "minute=2/60s,hour=3/1h")
	counters, six := Counters(t, "minute=2/60s"), must[throttle.Tier](t)(throttle.ParseTier("minute=6/60s"))
	token := must[throttle.TokenBucket](t)(throttle.NewTokenBucket(six, 2)) // a token each 10 s
	leaky := must[throttle.LeakyBucket](t)(throttle.NewLeakyBucket(six, 2)) // one leaves each 10 s
	return slices.Concat([]story{
		{"a first send", usual, `
			0 peek   allowed [minute 1 0 0] [hour 5 0 0] [day 10 0 0]
			0 take a allowed by minute for 60000 [minute 0 60000 60000] [hour 4 0 3600000] [day 9 0 86400000]`},
		{"a refusal changes nothing", usual, `
			0     take a  allowed
			1     take b  refused by minute for 59999
			59999 take b  refused by minute for 1
			59999 history a@0
			60000 take b  allowed
			60000 history a@0 b@60000`},
		{"the longest wait names the limit", Policy(t, "short=1/1s,long=2/4s"), `
			0    take ? allowed
			3000 take ? allowed
			3000 take ? refused by long for 1000 [short 0 1000 1000] [long 0 1000 1000]
			4000 take ? allowed by long for 3000 [short 0 1000 1000] [long 0 3000 3000]`},
		{"refill is when the oldest send leaves", Policy(t, "quick=1/2s,short=3/20s"), `
			0    take ? allowed
			5000 peek   allowed [quick 1 0 0] [short 2 0 15000]
			5000 take ? allowed
			5000 peek   refused by quick for 2000 [quick 0 2000 2000] [short 1 0 15000]`},
		{"take is idempotent by id", usual, `
			0         take a  allowed
			1000      take a  allowed by minute for 59000 at 0 [minute 0 59000 59000] [hour 4 0 3599000] [day 9 0 86399000]
			1000      take b  refused
			1000      history a@0
			60000     take b  allowed by minute for 60000 [minute
			864000000 take a  allowed by minute for 60000 [minute
			864000000 history a@864000000`},
		{"release", two, `
			0 take a    allowed
			0 take b    allowed
			0 take c    refused by minute for 60000 [minute 0 60000 60000] [hour 1 0 3600000]
			0 release c false
			0 release a true
			0 release a false
			0 peek      allowed [minute 1 0 60000] [hour 2 0 3600000]
			0 release b true
			0 history
			0 peek      allowed [minute 2 0 0] [hour 3 0 0]`},
		{"release at the end of the window and of the record", Policy(t, "minute=1/60s"), `
			0      take a    allowed
			60000  release a true
			59999  peek      allowed [minute 1 0 0]
			59999  take b    allowed
			120998 release b true
			130000 take c    allowed
			191000 release c false`},
		{"reset", two, `
			0       reset  0
			0       take ? allowed
			3599999 take ? allowed
			3600000 reset  1
			3600000 peek   allowed [minute 2 0 0] [hour 3 0 0]
			3600000 take ? allowed
			9999999 reset  0
			0       peek   allowed [minute 2 0 0] [hour 3 0 0]`},
		{"history", two, `
			0       take a  allowed
			60000   take b  allowed
			3599999 history a@0 b@60000
			3600000 history b@60000`},
		{"a clock that steps back", Policy(t, "minute=2/60s,hour=4/1h"), `
			0         take ? allowed
			30000     take ? allowed
			-86400000 take ? refused by minute for 30000 at 30000 [minute 0 30000 30000] [hour 2 0 3570000]
			59999     take ? refused by minute for 1
			60000     take ? allowed`},
		{"a clock that steps back over a release", Policy(t, "minute=1/60s"), `
			0      take a    allowed
			60000  take b    allowed
			60001  release b true
			30000  take c    allowed by minute for 60000 at 60000
			119999 take ?    refused
			120000 take ?    allowed`},
		{"record keeps times in any order", Policy(t, "minute=2/60s,hour=9/1h"), `
			20000 take c   allowed
			40000 record b@10000
			40000 record e@40000
			40000 record a@0 d@30000
			40000 history  a@0 b@10000 c@20000 d@30000 e@40000
			40000 peek     refused by minute for 50000 [minute 0 50000 50000] [hour 4 0 3560000]
			89999 take ?   refused
			90000 take ?   allowed`},
		{"record is idempotent by id", two, `
			0    take a    allowed
			5000 record a@2000 b@1000
			5000 record b@5000
			5000 history   a@0 b@1000
			5000 take b    allowed by minute for 55000 at 1000
			5000 release b true
			5000 release b false`},
		{"record of what has left or lies ahead", two, `
			0 record a@-3600000 b@-86400000
			0 record c@-3599999
			0 take d   allowed
			0 record e@86400000
			0 release a false
			0 release b false
			0 release c true
			0 release e true
			0 history   d@0`},
		{"fixed window", counters["fixed window"], `
			0      peek      allowed [minute 2 0 0]
			50000  take ?    allowed
			50000  take ?    allowed by minute for 10000 [minute 0 10000 10000]
			59999  take ?    refused by minute for 1 [minute 0 1 1]
			60000  take a    allowed
			60000  take b    allowed
			60000  take ?    refused by minute for 60000 [minute 0 60000 60000]
			1      take ?    refused by minute for 60000 at 60000 [minute 0 60000 60000]
			1      release a true
			1      take c    allowed by minute for 60000 at 60000
			120000 record d@119999
			120000 peek      allowed [minute 2 0 0]
			120000 record e@120000 f@120000 g@120000
			120000 release a false
			120000 peek      refused by minute for 60000 [minute 0 60000 60000]
			120000 reset     3`},
		{"sliding window", counters["sliding window"], `
			5000  take a    allowed
			30000 take ?    allowed by minute for 39999 [minute 0 39999 39999]
			69998 take ?    refused by minute for 1 [minute 0 1 1]
			69998 release a true
			69998 release a false
			69998 peek      allowed [minute 1 0 30001]
			69999 take b    allowed
			69999 take ?    refused by minute for 30000 [minute 0 30000 30000]
			69999 release b true
			0     take c    allowed by minute for 39999 at 60000
			75000 record d@29999 e@9999
			75000 peek      refused by minute for 24999 [minute 0 24999 24999]
			75000 reset     3`},
		{"token bucket", token, `
			0     peek      allowed [minute 2 0 0]
			0     take a    allowed
			0     take ?    allowed by minute for 10000 [minute 0 10000 10000]
			9999  take ?    refused by minute for 1 [minute 0 1 1]
			10000 take b    allowed
			10000 release a false
			14000 release b true
			14000 peek      allowed [minute 1 0 6000]
			14000 take c    allowed by minute for 6000 [minute 0 6000 6000]
			20000 take ?    allowed
			20000 release c true
			20000 peek      refused by minute for 6000 [minute 0 6000 6000]
			0     take ?    refused by minute for 6000 at 20000 [minute 0 6000 6000]`},
		{"token bucket records", token, `
			100000 record a@85000 b@80000
			100000 peek   allowed [minute 2 0 0]
			100000 take ? allowed
			100000 record c@95000
			100000 peek   refused by minute for 10000 [minute 0 10000 10000]
			100000 record d@95000 e@80000
			100000 peek   refused by minute for 10000 [minute 0 10000 10000]
			100000 reset  2`},
		{"leaky bucket", leaky, `
			0     take ?    allowed [minute 2 0 10000]
			1000  take a    allowed delayed 9000 [minute 1 0 9000]
			2000  take b    allowed by minute for 8000 delayed 18000 [minute 0 8000 8000]
			2000  take ?    refused by minute for 8000 [minute 0 8000 8000]
			2000  release a false
			2000  release b true
			2000  take ?    allowed by minute for 8000 delayed 18000 [minute 0 8000 8000]
			-5000 take ?    refused by minute for 8000 at 2000 [minute 0 8000 8000]`},
	}, ofEachCounter(t))
}

// ofEachCounter are stories that differ in their waits alone.
func ofEachCounter(t *testing.T) (all []story) {
	for name, a := range Counters(t, "minute=3/60s") {
		all = append(all, story{name + " knows no ids", a, `
			0 take a    allowed
			0 take a    allowed
			0 take b    allowed
			0 take c    refused
			0 release b true
			0 take c    allowed
			0 take d    refused
			0 reset     3
			0 release c false
			0 peek      allowed [minute 3 0 0]`})
	}
	return all
}
