package sandbox

import "testing"

// Whatever email comes in, it can be shown, and is no larger for that than it was.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"Subject: =?utf-8?q?a=20b?=\r\nFrom: a@b.c\r\n\r\ntext", "no header at all",
		"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\nPHA+\r\n--x--",
		"Content-Type: multipart/a; boundary=x\r\n\r\n--x\r\nContent-Type: multipart/b; boundary=y\r\n\r\n--y\r\n\r\na\r\n--y--\r\n--x--",
		"Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=BC=\r\n=zz", "Content-Type: ;;=\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := read(envelope{id: 1, from: "a@b.c", to: []string{"d@e.f"}, raw: raw})
		octets := len(m.Text) + len(m.HTML)
		for _, f := range m.Files {
			octets += len(f.Content)
		}
		if octets > 2*len(raw) {
			t.Fatalf("%d octets became %d", len(raw), octets)
		}
	})
}
