package countdown

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The vectors of the C2SP specification, one for each value of the subkey's top bit.
func TestExtendedKeyIsXAES(t *testing.T) {
	tests := []struct {
		key   byte
		bound string
		want  string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	}
	for _, tt := range tests {
		key, err := newExtendedKey(bytes.Repeat([]byte{tt.key}, keySize))
		if err != nil {
			t.Fatal(err)
		}
		nonce, plain := []byte("ABCDEFGHIJKLMNOPQRSTUVWX"), []byte("XAES-256-GCM")
		sealed := key.seal(nil, nonce, plain, []byte(tt.bound))
		if got := hex.EncodeToString(sealed); got != tt.want {
			t.Errorf("key %d: sealed %s, want %s", tt.key, got, tt.want)
		}
		opened, err := key.open(nonce, sealed, []byte(tt.bound))
		if err != nil || !bytes.Equal(opened, plain) {
			t.Errorf("key %d: opened %q, %v", tt.key, opened, err)
		}
	}
}
