package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dgraph-io/badger/v4"
)

// trialFile is made and removed to see whether files can be made.
const trialFile = "trial"

// accessible says no where the process has no right to a file or to make one. Badger's
// errors do not tell that from damage.
func accessible(dir string, entries []fs.DirEntry) error {
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !ofTheStore(entry.Name()) {
			continue
		}
		if err := tryOpen(filepath.Join(dir, entry.Name()), 0); err != nil {
			return err
		}
	}
	trial := filepath.Join(dir, trialFile)
	if err := tryOpen(trial, os.O_CREATE); err != nil {
		return err
	}
	if err := os.Remove(trial); err != nil {
		return openError(err)
	}
	return nil
}

// ofTheStore says whether Badger has made the file. Others may lie beside them.
func ofTheStore(name string) bool {
	switch name {
	case badger.ManifestFilename, badger.KeyRegistryFileName, "DISCARD", "LOCK":
		return true
	}
	switch filepath.Ext(name) {
	case tableSuffix, logSuffix, valueLogSuffix:
		return true
	}
	return false
}

func tryOpen(path string, flags int) error {
	file, err := os.OpenFile(path, os.O_RDWR|flags, 0o600)
	if err != nil {
		return openError(err)
	}
	_ = file.Close() // nothing was written to it
	return nil
}

// openError gives the error of a file that does not open its kind.
func openError(err error) error {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}
