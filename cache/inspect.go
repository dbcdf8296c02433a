package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
	"github.com/dgraph-io/ristretto/v2/z"
)

// A finding is what is in a directory before Badger opens it.
type finding struct {
	store bool  // Badger has been here
	bytes int64 // of tables
}

// inspect looks for damage that Badger would pass over or end the process at: it
// takes a missing manifest for an empty store and removes every table, leaves out a
// table it cannot read, and takes a block it cannot read for one without the key,
// and does not miss a log. Each of these is a mailbox that may be mailed again. What is damaged is left as it was found.
func inspect(dir string, lock *os.File, log *slog.Logger) (finding, error) {
	var found finding
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if err := expectLog(lock, entries); err != nil {
		return found, err
	}
	if err := accessible(dir, entries); err != nil {
		return found, err
	}
	listed, err := manifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, noneWithoutManifest(entries)
	case err != nil:
		return found, err
	}
	found.store = true
	for id := range listed {
		size, err := inspectTable(table.NewFilename(id, dir))
		if err != nil {
			return found, fmt.Errorf("%w: table %d: %w", ErrCorrupt, id, err)
		}
		found.bytes += size
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == logSuffix {
			if err := inspectLog(filepath.Join(dir, entry.Name()), log); err != nil {
				return found, err
			}
		}
	}
	return found, removeEmpty(dir, entries, log)
}

// manifest reads which tables there must be.
func manifest(dir string) (tables map[uint64]badger.TableManifest, err error) {
	file, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	defer file.Close()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: manifest: %v", ErrCorrupt, p)
		}
	}()
	m, _, err := badger.ReplayManifestFile(file, 0, badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return m.Tables, nil
}

func noneWithoutManifest(entries []fs.DirEntry) error {
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case tableSuffix, valueLogSuffix, logSuffix:
			return fmt.Errorf("%w: there is %s but no %s", ErrCorrupt, entry.Name(), badger.ManifestFilename)
		}
	}
	return nil
}

// inspectTable reads every block and compares its checksum. A table in pieces can
// make Badger's code panic.
func inspectTable(path string) (size int64, err error) {
	file, err := z.OpenMmapFile(path, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("its blocks cannot be read")
		}
		if e := file.Close(-1); err == nil {
			err = e
		}
	}()
	t, err := table.OpenTable(file, table.Options{ReadOnly: true, ChkMode: options.NoVerification})
	if err != nil {
		return 0, err
	}
	return t.Size(), t.VerifyChecksum()
}
