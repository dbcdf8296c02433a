package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/internal/boundedfile"
)

// secretFile is where one node keeps the secret that it made, in the data directory.
const secretFile = "secret"

// openSecret is the secret that is set, or else this node's own, made at its first start. The
// data directory is open, so no other process makes one at the same time.
func openSecret(c *config.Config) ([]byte, error) {
	switch {
	case c.Secret != "":
		return []byte(c.Secret), nil
	case c.DataDir == config.Memory:
		return newSecret(), nil
	}
	path := filepath.Join(c.DataDir, secretFile)
	secret, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret = newSecret()
		err = writeSecret(path, secret)
	}
	if err != nil {
		return nil, c.Complain("data-dir", err.Error())
	}
	return secret, nil
}

// newSecret has 260 random bits, in letters and digits.
func newSecret() []byte { return []byte(rand.Text() + rand.Text()) }

// readSecret refuses a truncated secret: it would void every code and countdown already sent,
// and could be guessed.
func readSecret(path string) ([]byte, error) {
	text, err := boundedfile.Read(path, 4096)
	if err != nil {
		return nil, err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < len(newSecret()) {
		return nil, fmt.Errorf("the secret in %s is truncated; restore it, or remove the file to have a new one made", path)
	}
	return []byte(secret), nil
}

// writeSecret writes the whole secret or nothing, for this user only.
func writeSecret(path string, secret []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), secretFile+"-*") // made with 0600
	if err != nil {
		return fmt.Errorf("keeping the secret: %w", err)
	}
	_, err = fmt.Fprintf(file, "%s\n", secret)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keeping the secret: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// secretInfo shows by a digest which secret this server has.
func secretInfo(digest string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "mailgate_secret_info",
		Help:        "1, with a digest of the secret: nodes that share records need the same.",
		ConstLabels: prometheus.Labels{"digest": digest},
	})
	info.Set(1)
	return info
}
