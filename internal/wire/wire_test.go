package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mailgate/mailgate/internal/wire"
)

// Texts come out as they are, whatever another reader makes of them.
func TestEncode_AnyText_ReadBackAlike(t *testing.T) {
	for _, text := range []string{"", "plain", `"quoted\"`, "tab\tand\nline", "\x00\x1f\x7f", "ä € 😀", "\u2028", "</script>"} {
		var back string
		if err := json.Unmarshal(wire.Encode(text), &back); err != nil || back != text {
			t.Errorf("%q became %q, %v", text, back, err)
		}
	}
	if got := string(wire.Encode("a\x80<b>\xff")); got != "\"a\ufffd<b>\ufffd\"" {
		t.Errorf("no UTF-8 became %s", got)
	}
}

func TestObject_EachField_AsEncodeWritesIt(t *testing.T) {
	type object struct {
		Type     string   `json:"type"`
		Title    string   `json:"title"`
		Status   int64    `json:"status"`
		Detail   string   `json:"detail"`
		Rule     *string  `json:"rule"`
		Limit    string   `json:"limit"`
		Violated []string `json:"violated-policies"`
		MS       float64  `json:"ms"`
		Replayed bool     `json:"replayed"`
	}
	var o wire.Object
	o.Problem("a\xff\"b", "tab\t</x>", 429, "ä")
	o.StringOrNull("rule", "")
	o.StringOrNull("limit", "minute")
	o.Any("violated-policies", []string{"minute", "\n"})
	o.Float("ms", 1234.567)
	o.Bool("replayed", true)
	want := string(wire.Encode(object{"a\xff\"b", "tab\t</x>", 429, "ä", nil, "minute", []string{"minute", "\n"}, 1234.567, true}))
	if got := string(o.End()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	more := wire.Open([]byte(want))
	more.Raw("limits", []byte("[]"))
	if got := string(more.End()); got != want[:len(want)-1]+`,"limits":[]}` {
		t.Error(got)
	}
}

// A wait in seconds is never shorter than the one in milliseconds, nor by a second
// longer, and any moment is a JSON string.
func FuzzSeconds(f *testing.F) {
	for _, ms := range []int64{0, 1, 999, 1000, 1001, 1<<53 - 1, 1<<63 - 1, -1, -1 << 63} {
		f.Add(ms)
	}
	f.Fuzz(func(t *testing.T, ms int64) {
		if text := wire.Encode(wire.Time(ms)); !json.Valid(text) {
			t.Fatalf("%d is %s", ms, text)
		}
		if ms < 0 {
			return // no wait is so long
		}
		seconds := wire.Seconds(ms)
		if seconds < ms/1000 || seconds > ms/1000+1 || seconds == ms/1000 && ms%1000 != 0 {
			t.Fatalf("%d ms are %d s", ms, seconds)
		}
	})
}

// A time is what package time formats, before 1970 and in any year of four digits too.
func TestTime_AnyMoment_AsPackageTimeWritesIt(t *testing.T) {
	for _, ms := range []int64{0, 1, 999, 1000, 1764360000007, -1, -62_135_596_800_000, 253_402_300_799_999} {
		if got, want := wire.Time(ms), time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}
