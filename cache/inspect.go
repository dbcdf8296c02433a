package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
)

// A finding is what is in a directory before Badger opens it.
type finding struct {
	store  bool  // Badger has been here
	tables int   // that it will open
	bytes  int64 // of them
}

// inspect looks for damage that Badger would pass over or end the process at: it
// takes a missing manifest for an empty store and removes every table, and those that one
// which breaks off does not list, leaves out a table it cannot read, takes a block it cannot
// read for one without the key, and does not miss a log. Each of these is a mailbox that may
// be mailed again. What is damaged is left as it was found. The file of the lock has said how it
// was left.
func inspect(dir, said string, log *slog.Logger) (finding, error) {
	var found finding
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if said == saysDamaged {
		return found, fmt.Errorf("%w: a table went bad while it was open", ErrCorrupt)
	}
	if err := expectLog(said, entries); err != nil {
		return found, err
	}
	if err := accessible(dir, entries); err != nil {
		return found, err
	}
	listed, broken, err := manifest(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, noneWithoutManifest(entries)
	case err != nil:
		return found, err
	}
	found.store, found.tables = true, len(listed)
	if err := expectListed(said, entries, listed, broken); err != nil {
		return found, err
	}
	var content bytes.Buffer
	for id := range listed {
		size, err := inspectTable(dir, id, &content)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		if err != nil {
			return found, fmt.Errorf("table %d: %w", id, err)
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

// manifest reads which tables there must be, and whether it breaks off.
func manifest(dir string) (tables map[uint64]badger.TableManifest, broken bool, err error) {
	file, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	defer file.Close()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: manifest: %v", ErrCorrupt, p)
		}
	}()
	m, end, err := badger.ReplayManifestFile(file, 0, badger.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	rest, err := io.ReadAll(io.NewSectionReader(file, end-8, 1<<20))
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrDisk, err)
	}
	// To Badger zeros are records, of nothing.
	return m.Tables, len(rest) > 8 || bytes.Equal(rest, make([]byte, 8)), nil
}

// expectListed says no when the manifest has lost a table. While there are logs one may not
// be listed yet, for each log but the newest: what is in it is in the log too. Also the tables
// of a compaction that was under way may not be, and are none too many, but where the
// manifest breaks off nobody can tell them from what it has lost.
func expectListed(said string, entries []fs.DirEntry, listed map[uint64]badger.TableManifest, broken bool) error {
	logs := 0
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == logSuffix {
			logs++
		}
	}
	tables := len(unlisted(entries, listed))
	if said == saysClosed && tables > 0 || broken && tables > max(0, logs-1) {
		return fmt.Errorf("%w: tables that %s does not list: %d", ErrCorrupt, badger.ManifestFilename, tables)
	}
	return nil
}

// unlisted are the tables that are there and not listed, but for empty ones.
func unlisted(entries []fs.DirEntry, listed map[uint64]badger.TableManifest) (names []string) {
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != tableSuffix {
			continue
		}
		id, is := table.ParseFileID(entry.Name())
		if _, found := listed[id]; is && !found && hasBytes(entry) {
			names = append(names, entry.Name())
		}
	}
	return names
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

func hasBytes(entry fs.DirEntry) bool {
	info, err := entry.Info()
	return err != nil || info.Size() > 0
}

// inspectTable reads a table and compares the checksums. It does not map the file: Badger
// may remove it meanwhile, and what is not there can be read without harm.
func inspectTable(dir string, id uint64, into *bytes.Buffer) (size int64, err error) {
	file, err := os.Open(table.NewFilename(id, dir))
	if err != nil {
		return 0, openError(err)
	}
	defer file.Close()
	into.Reset()
	if size, err = into.ReadFrom(file); err != nil {
		return 0, openError(err)
	}
	if err := verify(into.Bytes(), id); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return size, nil
}

// verify compares the checksums of a table. One in pieces can make Badger's code panic.
func verify(content []byte, id uint64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("its blocks cannot be read")
		}
	}()
	t, err := table.OpenInMemoryTable(content, id, &table.Options{ReadOnly: true, ChkMode: options.NoVerification})
	if err != nil {
		return err
	}
	return t.VerifyChecksum()
}
