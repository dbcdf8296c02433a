package secret

import "encoding/hex"

// digestOf is the purpose of a Digest.
const digestOf = "mailgate secret: digest, version 1"

// Digest is four hexadecimal digits for those who look after servers: where they differ the
// secrets do. One in 65,536 secrets has the same, so they prove no guess, as a token that was
// made with the secret does.
func Digest(of []byte) (string, error) {
	key, err := Key(of, digestOf)
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(key[:2]), nil
}
