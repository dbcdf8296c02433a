package verify

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/secret"
	"github.com/mailgate/mailgate/throttle"
)

// The values were computed with another implementation of HKDF and HMAC. The case of Latin letters in
// an address makes no difference, and all else does.
func TestHashOf_KnownInput_KnownValue(t *testing.T) {
	const ours = "sixteen bytes of chance, or more"
	for _, tt := range []struct{ secret, address, purpose, code, want string }{
		{ours, "alice@example.com", "", "482913", "94f97096510a034b0bc6693ebcf7c16d"},
		{ours, "alice@example.com", "sign-up", "482913", "4a22ca388ff6bf254eaba2cd5fcf7849"},
		{ours, "Alice@EXAMPLE.com", "sign-up", "482913", "4a22ca388ff6bf254eaba2cd5fcf7849"},
		{ours, "alice@example.com", "Sign-up", "482913", "c4ed1278879a3f158443162344c9aaba"},
		{ours, "alice@example.com", "sign-up", "482914", "a683d3b420f9e36a3affa672e0449d2b"},
		{ours, "alice+x@example.com", "sign-up", "482913", "6168aa4f22f6193a059c0f545d3df46f"},
		{ours, "alice@example.\u212aom", "sign-up", "482913", "bba14a6e228d2e3340621684283bb5aa"}, // a Kelvin sign
		{ours + "!", "alice@example.com", "sign-up", "482913", "766938b7890eb41975c3ce4bcacea7b5"},
		{ours, "AZ@x", "sign-up", "482913", "35cc42b6a9bf0a18bb3b05d24bee6807"}, // as az@x
	} {
		key := must.Get(secret.Key([]byte(tt.secret), hashPurpose))(t)
		got := hashOf(secret.NewMAC(key), Recipient{Mailbox: "any", Address: tt.address, Purpose: tt.purpose}, tt.code)
		if hex.EncodeToString(got[:]) != tt.want {
			t.Errorf("%+v: %x", tt, got)
		}
	}
}

// String writes a record as "used 5; a10 b20": codes by their first letter and expiry.
func (r record) String() string {
	words := []string{fmt.Sprint("used ", r.usedUntil, ";")}
	for _, k := range r.codes {
		words = append(words, fmt.Sprintf("%c%d", k.hash[0], k.expires))
	}
	for _, n := range r.notes {
		words = append(words, fmt.Sprint("note ", n.Whose, n.Text, n.expires))
	}
	return strings.Join(words, " ")
}

func named(name byte) hash { return hash{name} }

// One mailbox, step by step. Codes live for 10.
func TestRecord_StepByStep_Outcomes(t *testing.T) {
	type step struct {
		now  int64
		does string // "issue a"
		want string
	}
	for name, steps := range map[string][]step{
		"right once":           {{1, "issue a", "used 0; a11"}, {10, "verify a", "correct: used 11;"}, {10, "verify a", "expired: used 11;"}, {11, "verify a", "expired: used 0;"}},
		"expires":              {{1, "issue a", "used 0; a11"}, {11, "verify a", "expired: used 0;"}},
		"both are right":       {{1, "issue a", "used 0; a11"}, {2, "issue b", "used 0; a11 b12"}, {3, "verify c", "incorrect: used 0; a11 b12"}, {3, "verify a", "correct: used 12;"}},
		"expired is forgotten": {{1, "issue a", "used 0; a11"}, {2, "issue b", "used 0; a11 b12"}, {11, "verify a", "incorrect: used 0; b12"}, {5, "verify a", "incorrect: used 0; b12"}},
		"same moment as used":  {{1, "issue a", "used 0; a11"}, {1, "verify a", "correct: used 11;"}, {1, "issue b", "used 11; b12"}, {11, "verify b", "correct: used 12;"}},
		"clock stepped back":   {{5, "issue a", "used 0; a15"}, {5, "verify a", "correct: used 15;"}, {1, "issue b", "used 15; b16"}, {2, "verify b", "correct: used 16;"}},
		"revoked":              {{1, "issue a", "used 0; a11"}, {2, "issue b", "used 0; a11 b12"}, {3, "revoke b", "used 0; a11"}, {3, "revoke c", "used 0; a11"}, {3, "verify b", "incorrect: used 0; a11"}},
		"notes outlive codes":  {{1, "note web", "used 0; note webx31"}, {1, "issue a", "used 0; a11 note webx31"}, {12, "issue b", "used 0; b22 note webx31"}, {13, "verify b", "correct: used 22;"}},
		"notes expire":         {{1, "note web", "used 0; note webx31"}, {31, "verify a", "expired: used 0;"}},
		"wrong keeps notes":    {{1, "note web", "used 0; note webx31"}, {1, "issue a", "used 0; a11 note webx31"}, {2, "verify b", "incorrect: used 0; a11 note webx31"}},
		"a caller's notes":     {{1, "note web", "used 0; note webx31"}, {2, "note app", "used 0; note webx31 note appx32"}, {3, "report web", "1: used 0; note appx32"}, {3, "report web", "0: used 0; note appx32"}},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			for _, s := range steps {
				verb, code, _ := strings.Cut(s.does, " ")
				got := ""
				switch verb {
				case "issue":
					r = r.issue(named(code[0]), s.now, 10)
				case "revoke":
					r = r.revoke(named(code[0]), throttle.ID{}, s.now)
				case "note":
					r = r.note([]Note{{Send: throttle.NewID(), Whose: code, Text: "x", Life: 30}, {Whose: "none"}}, s.now)
				case "report":
					var notes []Note
					r, notes = r.report(code, s.now)
					got = fmt.Sprint(len(notes), ": ")
				case "verify":
					var result Result
					r, result = r.verify(named(code[0]), s.now)
					got = [...]string{"expired", "incorrect", "correct"}[result] + ": "
				}
				if got += r.String(); got != s.want {
					t.Fatalf("%s at %d: %s, want %s", s.does, s.now, got, s.want)
				}
				if again, err := parse(r.encode()); err != nil || !reflect.DeepEqual(again, r) {
					t.Fatalf("%v is read back as %v, %v", r, again, err)
				}
			}
		})
	}
}

func TestRecord_SeventeenthCode_ForgetsTheFirst(t *testing.T) {
	var r record
	for i := range byte(maxCodes + 1) {
		r = r.issue(named('a'+i), int64(i), 100)
	}
	_, first := r.verify(named('a'), 50)
	_, second := r.verify(named('b'), 50)
	if len(r.codes) != maxCodes || first != Incorrect || second != Correct {
		t.Errorf("%d codes; the first is %d and the second %d", len(r.codes), first, second)
	}
}

func TestMerge_TwoRecords_OneHolds(t *testing.T) {
	of := func(usedUntil int64, codes ...kept) []byte {
		return record{usedUntil: usedUntil, codes: codes}.encode()
	}
	a, b, c := kept{named('a'), 11}, kept{named('b'), 12}, kept{named('c'), 13}
	for name, tt := range map[string]struct {
		shared, own []byte
		now         int64
		want        string
	}{
		"union":                  {of(0, a), of(0, b, c), 1, "used 0; a11 b12 c13"},
		"without what expired":   {of(0, a), of(0, b, c), 12, "used 0; c13"},
		"used up at the node":    {of(0, a, c), of(12), 1, "used 12; c13"},
		"later of one code":      {of(0, a), of(0, kept{named('a'), 20}), 1, "used 0; a20"},
		"watermark has expired":  {of(12), of(0, c), 12, "used 0; c13"},
		"damaged own is ignored": {of(0, a), []byte("damaged"), 1, "used 0; a11"},
	} {
		next, expires := Merge(tt.shared, tt.own, tt.now)
		if r, err := parse(next); err != nil || r.String() != tt.want || r.expires() != expires {
			t.Errorf("%s: %v until %d, want %s; %v", name, r, expires, tt.want, err)
		}
	}
	if next, expires := Merge([]byte("damaged"), of(0, a), 1); string(next) != "damaged" || expires <= 1 {
		t.Errorf("a damaged shared record became %x until %d", next, expires)
	}
}

// Records of random histories merge into one, in whatever order and however often, and a code
// that was right at one of them is not right any more.
func TestMerge_RandomHistories_OrderMakesNoDifference(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var all [3]record
		used := map[hash]bool{}
		now, issued := int64(1), byte(0)
		for range 60 {
			now += random.Int64N(3)
			r := &all[random.IntN(len(all))]
			switch random.IntN(6) {
			default:
				issued++
				*r = r.issue(hash{issued}, now, 10+random.Int64N(100))
			case 1:
				if len(r.codes) > 0 {
					right := r.codes[random.IntN(len(r.codes))].hash
					if next, result := r.verify(right, now); result == Correct {
						*r, used[right] = next, true
					}
				}
			case 2:
				from := all[random.IntN(len(all))]
				*r = makeMerged(t, *r, from, now)
			case 3:
				*r = r.note([]Note{{Send: throttle.ID([]byte(fmt.Sprintf("send%04d", random.IntN(9)))), Whose: "web", Text: "x", Life: random.Int64N(99)}}, now)
			}
		}
		merged := func(order ...int) (r record) {
			for _, i := range order {
				r = makeMerged(t, r, all[i], now)
			}
			return r
		}
		one := merged(0, 1, 2)
		for _, other := range []record{merged(2, 1, 0), merged(1, 2, 1, 0, 2), makeMerged(t, all[0], merged(1, 2), now)} {
			if other.String() != one.String() {
				t.Fatalf("seed %d at %d: %v merge into %v and %v", seed, now, all, one, other)
			}
		}
		for h := range used {
			if _, result := one.verify(h, now); result == Correct {
				t.Fatalf("seed %d at %d: a used code is right in %v, of %v", seed, now, one, all)
			}
		}
	}
}

func makeMerged(t *testing.T, a, b record, now int64) record {
	t.Helper()
	next, _ := Merge(a.encode(), b.encode(), now)
	return must.Get(parse(next))(t)
}

// Whatever is in a store, parse returns an error or the record whose bytes these are.
func FuzzParseRecord(f *testing.F) {
	f.Add(record{}.encode())
	f.Add(record{usedUntil: 1_800_000_000_000}.encode())
	codes := []kept{{named('a'), 11}, {named('b'), 11}, {named('c'), 1_800_000_000_000}}
	f.Add(record{usedUntil: 5, codes: codes}.encode())
	f.Add(record{codes: codes, notes: []Note{{Whose: "web", Text: "rule", expires: 7}, {Text: "other", expires: 7}}}.encode())
	f.Add([]byte{3, 1})
	f.Add(append([]byte{recordVersion}, make([]byte, 8+24)...))
	f.Add(append([]byte{recordVersion}, make([]byte, 7)...))
	f.Add(append([]byte{recordVersion}, make([]byte, 8)...))
	f.Add(append([]byte{recordVersion}, make([]byte, 8+23)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parse(b)
		if err != nil {
			return
		}
		if again := r.encode(); !bytes.Equal(again, b) || len(r.codes) > maxCodes || len(r.notes) > maxNotes {
			t.Fatalf("%x was parsed as %v, which is written %x", b, r, again)
		}
	})
}
