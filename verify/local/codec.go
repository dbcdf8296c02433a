package local

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/mailgate/mailgate/verify"
)

// codesCodec writes codes as a version and then, for each, the milliseconds since the
// expiry of the one before and the hash.
type codesCodec struct{}

const codecVersion = 1

var errCodes = errors.New("not the codes of a mailbox")

func (codesCodec) Append(b []byte, codes verify.Codes) []byte {
	b = append(b, codecVersion)
	since := int64(0)
	for _, code := range codes {
		b = binary.AppendVarint(b, code.Expires-since)
		b = append(b, code.Hash[:]...)
		since = code.Expires
	}
	return b
}

func (codesCodec) Parse(b []byte) (verify.Codes, error) {
	if len(b) == 0 || b[0] != codecVersion {
		return nil, errCodes
	}
	var codes verify.Codes
	since := int64(0)
	for b = b[1:]; len(b) > 0; {
		step, n := binary.Varint(b)
		// A longer way to write a number than the one that is written does not pass.
		if n <= 0 || n > 1 && b[n-1] == 0 || len(b) < n+len(verify.Hash{}) {
			return nil, errCodes
		}
		since += step
		codes = append(codes, verify.Kept{Hash: verify.Hash(b[n : n+len(verify.Hash{})]), Expires: since})
		b = b[n+len(verify.Hash{}):]
	}
	if len(codes) == 0 || !codes.Sorted() {
		return nil, errCodes
	}
	return codes, nil
}

func (codesCodec) Weigh(codes verify.Codes) int {
	return cap(codes) * int(unsafe.Sizeof(verify.Kept{}))
}
