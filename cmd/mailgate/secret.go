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

	"github.com/mailgate/mailgate/boundedfile"
	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cmd/mailgate/settings"
)

// secretFile is where one node keeps the secret that it has made, in the data directory.
const secretFile = "secret"

// openSecret is the secret that is set, or else this node's own, which is made at its
// first start. The data directory is open, so that no other process makes one.
func openSecret(s *settings.Settings) ([]byte, error) {
	if s.Secret != "" {
		return []byte(s.Secret), nil
	}
	if s.DataDir == cache.Memory {
		return newSecret(), nil
	}
	path := filepath.Join(s.DataDir, secretFile)
	secret, err := readSecret(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret = newSecret()
		err = writeSecret(path, secret, syncDir)
	}
	if err != nil {
		return nil, s.Complain("data_dir", err.Error())
	}
	return secret, nil
}

// newSecret is 260 bits of chance in letters and digits.
func newSecret() []byte { return []byte(rand.Text() + rand.Text()) }

// readSecret takes what newSecret made and nothing less: under half a secret every code
// and token on its way would be wrong, and the next ones could be guessed.
func readSecret(path string) ([]byte, error) {
	text, err := boundedfile.Read(path, 4096)
	if err != nil {
		return nil, err
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < len(newSecret()) {
		return nil, fmt.Errorf("the secret in %s is not whole; put it back, or remove the file to have a new one made", path)
	}
	return []byte(secret), nil
}

// writeSecret keeps the secret for this user alone, whole or not at all. When sync has
// written out the directory it is there after a power cut too.
func writeSecret(path string, secret []byte, sync func(dir string) error) error {
	err := putInPlace(path, secret)
	if err == nil {
		err = sync(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("keeping the secret: %w", err)
	}
	return nil
}

func putInPlace(path string, secret []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), secretFile+"-*") // made with 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = fmt.Fprintf(file, "%s\n", secret)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// newSecretInfo says by its digest which secret this server has.
func newSecretInfo(digest string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "mailgate_secret_info",
		Help:        "1, with a digest of the secret: processes that share a history have one.",
		ConstLabels: prometheus.Labels{"digest": digest},
	})
	info.Set(1)
	return info
}
