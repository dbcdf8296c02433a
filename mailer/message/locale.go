package message

import (
	"maps"
	"slices"
	"strings"
)

// maxLocale is longer than any language tag in use.
const maxLocale = 35

// nearestLocale picks the locale to write in. It tries the requested one, without its last part again and again:
// zh-Hans-CN, zh-Hans, zh. Then it takes the first of the same language (pt-BR for pt), else the default. This is
// RFC 4647's lookup with one more step. Text that is no language tag ends at the default.
func nearestLocale[T any](have map[string]T, asked, otherwise string) string {
	if asked == "" || len(asked) > maxLocale {
		return otherwise
	}
	asked = normalLocale(asked)
	for tag := asked; tag != ""; {
		if _, ok := have[tag]; ok {
			return tag
		}
		cut := strings.LastIndexByte(tag, '-')
		tag = tag[:max(cut, 0)]
	}
	language, _, _ := strings.Cut(asked, "-")
	for _, tag := range slices.Sorted(maps.Keys(have)) {
		if strings.HasPrefix(tag, language+"-") {
			return tag
		}
	}
	return otherwise
}

// normalLocale returns the spelling in which locales are compared.
func normalLocale(locale string) string {
	return strings.ReplaceAll(strings.ToLower(locale), "_", "-")
}

// isLocale reports whether a normal locale looks like a language tag.
func isLocale(locale string) bool {
	for part := range strings.SplitSeq(locale, "-") {
		if len(part) < 1 || len(part) > 8 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return len(locale) >= 2 && len(locale) <= maxLocale
}
