package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		return fmt.Errorf("%w: %w", ErrFiles, err)
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}

// enoughHandles says no where the process may not open so many tables and those that a write
// needs. Badger has all tables open, and its error would not be told from damage.
func enoughHandles(dir string, tables int) error {
	free, err := freeHandles(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if need := int64(tables) + fileReserve; free < need {
		return fmt.Errorf("%w: %d more, %d needed", ErrFiles, free, need)
	}
	return nil
}

// badgerError gives the error of a store that Badger does not open its kind. Badger's errors
// wrap no other, so it is their words that tell.
func badgerError(err error) error {
	switch {
	case strings.Contains(err.Error(), "Cannot acquire directory lock"):
		return ErrInUse
	case tells(err, syscall.EMFILE, syscall.ENFILE):
		return fmt.Errorf("%w: %w", ErrFiles, err)
	}
	return fmt.Errorf("%w: %w", ErrDisk, err)
}

// ofDamage reports whether a store must be damaged that Badger does not open, and not the
// system be short of something or its drive fail.
func ofDamage(err error) bool {
	return !errors.Is(err, ErrInUse) && !errors.Is(err, ErrFull) && !tells(err, syscall.ENOMEM, syscall.EIO)
}

func tells(err error, numbers ...syscall.Errno) bool {
	return slices.ContainsFunc(numbers, func(e syscall.Errno) bool { return strings.Contains(err.Error(), e.Error()) })
}
