package sandbox

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestReadContent reads 16 octets at a time, of which full is one short.
func TestReadContent(t *testing.T) {
	const full = "xxxxxxxxxxxxxxx"
	for name, tt := range map[string]struct {
		in, want string
		fault    error
	}{
		"nothing":                        {".\r\n", "", nil},
		"a dot and not two":              {".y\r\n.\r\n", "y\r\n", nil},
		"a long line":                    {full + full + "x\r\n.\r\n", full + full + "x\r\n", nil},
		"a CRLF over two reads":          {full + "\r\n.\r\n", full + "\r\n", nil},
		"a dot behind it":                {full + "\r\n..y\r\n.\r\n", full + "\r\n.y\r\n", nil},
		"a dot where a read begins":      {full + "x.\r\n.\r\n", full + "x.\r\n", nil},
		"as long as may be":              {full + full + full + "x\r\n.\r\n", full + full + full + "x\r\n", nil},
		"an octet more":                  {full + full + full + "xx\r\n.\r\n", "", errTooBig},
		"a CR alone":                     {"x\ry\r\n.\r\n", "", errBareLineEnd},
		"a CR alone in a long line":      {"x\r" + full + full + "\r\n.\r\n", "", errBareLineEnd},
		"a CR alone that ends a read":    {full + "\ry\r\n.\r\n", "", errBareLineEnd},
		"a CR alone that begins a line":  {"\r" + full + full + "\r\n.\r\n", "", errBareLineEnd},
		"an LF alone":                    {"x\ny\r\n.\r\n", "", errBareLineEnd},
		"an LF alone that begins a read": {full + "x\n.\r\ny\r\n.\r\n", "", errBareLineEnd},
		"an LF alone in front of an end": {"x\n.\r\ny\r\n.\r\n", "", errBareLineEnd},
		"the connection ends":            {"x\r\n", "", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			in := bufio.NewReaderSize(strings.NewReader(tt.in), 16)
			got, err := readContent(in, 48)
			if !errors.Is(err, tt.fault) || tt.fault == nil && string(got) != tt.want {
				t.Errorf("%q, %v; want %q, %v", got, err, tt.want, tt.fault)
			}
			if in.Buffered() > 0 || len(got) > 48 {
				t.Errorf("%d octets are left, %d are kept", in.Buffered(), len(got))
			}
		})
	}
}
