package message

import (
	"strings"
	"testing"
)

func TestLocale_EachTag_NearestIsChosen(t *testing.T) {
	have := map[string]bool{"en": true, "zh": true, "zh-hant": true, "pt-br": true, "pt-pt": true, "de-ch": true}
	tests := []struct{ asked, want string }{
		{"", "en"}, {"en", "en"}, {"EN", "en"}, {"en-GB", "en"}, {"en_US", "en"}, {"en-US-x-twain", "en"},
		{"zh", "zh"}, {"zh-CN", "zh"}, {"zh-Hans-CN", "zh"}, {"zh-Hant", "zh-hant"}, {"zh-Hant-TW", "zh-hant"},
		{"pt-BR", "pt-br"}, {"pt_BR", "pt-br"}, {"pt-PT", "pt-pt"}, {"pt", "pt-br"}, {"pt-AO", "pt-br"},
		{"de", "de-ch"}, {"de-AT", "de-ch"}, {"fr", "en"}, {"fr-CA", "en"}, {"e", "en"}, {"z", "en"}, {"p", "en"},
		{"-", "en"}, {"--", "en"}, {"-zh", "en"}, {"zh-", "zh"}, {"../zh", "en"}, {"zh/../..", "en"}, {"zh\r\nX: y", "en"},
		{"\x00", "en"}, {strings.Repeat("zh-", 12) + "zh", "en"}, {strings.Repeat("a", 1<<20), "en"},
	}
	for _, test := range tests {
		if got := nearestLocale(have, test.asked, "en"); got != test.want {
			t.Errorf("%.40q: %q, want %q", test.asked, got, test.want)
		}
	}
}

func TestDuration_Milliseconds_InTheLargestUnit(t *testing.T) {
	tests := []struct {
		ms    int64
		count int64
		unit  string
	}{
		{1, 1, "second"}, {999, 1, "second"}, {1000, 1, "second"}, {1999, 1, "second"}, {59_999, 59, "second"},
		{60_000, 1, "minute"}, {60_999, 1, "minute"}, {61_000, 61, "second"}, {90_000, 90, "second"}, {119_999, 119, "second"},
		{120_000, 2, "minute"}, {299_999, 4, "minute"}, {600_000, 10, "minute"}, {3_599_999, 59, "minute"},
		{3_600_000, 1, "hour"}, {5_400_000, 90, "minute"}, {7_199_999, 119, "minute"}, {7_200_000, 2, "hour"},
		{86_400_000, 1, "day"}, {90_000_000, 25, "hour"}, {172_799_999, 47, "hour"}, {172_800_000, 2, "day"},
	}
	for _, test := range tests {
		if got := durationIn(test.ms); got != (duration{test.count, test.unit}) {
			t.Errorf("%d ms: %v, want %d %s", test.ms, got, test.count, test.unit)
		}
	}
}
