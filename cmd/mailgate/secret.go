package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/hooks"
	"github.com/mailgate/mailgate/internal/boundedfile"
	"github.com/mailgate/mailgate/mailer/proof"
)

// secretFile is where one node keeps the secret that it made, in the data directory.
const secretFile = "secret"

// openSecret returns the secret that is set, or else this node's own, made at its first start.
// The data directory is open, so no other process makes one at the same time. A truncated
// secret is refused: it would void every code and countdown already sent, and could be guessed.
func openSecret(c *config.Config) ([]byte, error) {
	made := rand.Text() + rand.Text() // 260 random bits
	switch {
	case len(c.Secret) > 0:
		return []byte(c.Secret[0]), nil
	case c.DataDir == config.Memory:
		return []byte(made), nil
	}
	path := filepath.Join(c.DataDir, secretFile)
	text, err := boundedfile.Read(path, 4096)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = []byte(made), writeSecret(path, made)
	}
	secret := bytes.TrimSpace(text)
	if err == nil && len(secret) < len(made) {
		err = fmt.Errorf("the secret in %s is truncated; restore it, or remove the file to have a new one made", path)
	}
	if err != nil {
		return nil, c.Complain("data-dir", err.Error())
	}
	return secret, nil
}

// writeSecret writes the whole secret or nothing, for this user only.
func writeSecret(path, secret string) error {
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(file, secret)
		err = errors.Join(err, file.Sync(), file.Close())
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("keeping the secret: %w", err)
	}
	return nil
}

// newProofs makes the proofs of emails, under this secret and the former ones.
func newProofs(c *config.Config, current []byte) (*proof.Proofs, error) {
	var former [][]byte
	for i, secret := range c.Secret {
		if i > 0 {
			former = append(former, []byte(secret))
		}
	}
	all, err := proof.New(hooks.Names(config.HooksOf[hooks.Reporter](c)), current, former...)
	if err != nil {
		return nil, c.Complain("secret", err.Error())
	}
	return all, nil
}
