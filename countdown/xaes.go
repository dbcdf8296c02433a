package countdown

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
)

const (
	keySize   = 32
	nonceSize = 24
	tagSize   = 16
)

// An extendedKey is a key of XAES-256-GCM (C2SP): AES-256-GCM under a key that is made
// for each message from the first 12 bytes of its nonce, with the other 12 as nonce.
type extendedKey struct {
	block cipher.Block
	mask  [aes.BlockSize]byte // the subkey K1 of CMAC, which makes the keys
}

func newExtendedKey(key []byte) (*extendedKey, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	k := &extendedKey{block: block}
	block.Encrypt(k.mask[:], k.mask[:])
	double(&k.mask)
	return k, nil
}

// double multiplies by x in the field of CMAC, in the same time for every value.
func double(b *[aes.BlockSize]byte) {
	carry := byte(0)
	for i := len(b) - 1; i >= 0; i-- {
		b[i], carry = b[i]<<1|carry, b[i]>>7
	}
	b[len(b)-1] ^= 0x87 * carry
}

// message is the AES-GCM of one message.
func (k *extendedKey) message(nonce []byte) (cipher.AEAD, error) {
	var key [keySize]byte
	for i := range 2 {
		half := key[i*aes.BlockSize : (i+1)*aes.BlockSize]
		copy(half, []byte{0, byte(i + 1), 'X', 0})
		copy(half[4:], nonce[:12])
		subtle.XORBytes(half, half, k.mask[:])
		k.block.Encrypt(half, half)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// seal appends the sealed text and its tag to out.
func (k *extendedKey) seal(out, nonce, plain, bound []byte) []byte {
	gcm, err := k.message(nonce)
	if err != nil {
		panic("countdown: AES-256-GCM refuses a key of 32 bytes: " + err.Error())
	}
	return gcm.Seal(out, nonce[12:], plain, bound)
}

func (k *extendedKey) open(nonce, sealed, bound []byte) ([]byte, error) {
	gcm, err := k.message(nonce)
	if err != nil {
		return nil, err
	}
	return gcm.Open(sealed[:0], nonce[12:], sealed, bound)
}
