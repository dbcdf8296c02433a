package message_test

import (
	"testing"

	"github.com/mailgate/mailgate/mailer/message"
)

func BenchmarkCompose(b *testing.B) {
	composer := newComposer(b, "Acme <no-reply@acme.example>", nil)
	for _, locale := range []string{"en", "zh"} {
		b.Run(locale, func(b *testing.B) {
			b.ReportAllocs()
			request := sampleRequest(b)
			request.Locale = locale
			for b.Loop() {
				if _, err := composer.Compose(request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		request := sampleRequest(b)
		for b.Loop() {
			if err := composer.Check(request); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check with data", func(b *testing.B) {
		b.ReportAllocs()
		composer, request := composerOf(b, "{{.Data.name}}", "{{.Data.name}}"), sampleRequest(b)
		request.Template, request.Data = "own", map[string]string{"name": "Alice"}
		for b.Loop() {
			if err := composer.Check(request); err != nil {
				b.Fatal(err)
			}
		}
	})
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
