package cache

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// Badger's log of a memtable is a header and then entries: two bytes, three varints
// (the lengths of key and value, the expiry), key, value, and a checksum of it all.
// The rest of the file is zeros.
const (
	tableSuffix    = ".sst"
	logSuffix      = ".mem"
	valueLogSuffix = ".vlog" // of what is too long for a table, so always without entries
	logHeader      = 20
)

// inspectLog says when a log breaks off before its end, as it does when the power
// went while the system was writing it out. Badger keeps what comes before, and drops
// what comes after without a word.
func inspectLog(path string, log *slog.Logger) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDisk, err)
	}
	if len(content) < logHeader {
		return nil
	}
	end := logHeader
	for length := entryLength(content[end:]); length > 0; length = entryLength(content[end:]) {
		end += length
	}
	if lost := lastWritten(content) - end; lost > 0 {
		log.Warn("data directory: a log breaks off; what was written after that is lost",
			"log", filepath.Base(path), "kept", end, "lost", lost)
	}
	return nil
}

// removeEmpty clears away logs that were made and never given their size, which
// Badger cannot open: the process or the machine stopped in between.
func removeEmpty(dir string, entries []fs.DirEntry, log *slog.Logger) error {
	for _, entry := range entries {
		ext := filepath.Ext(entry.Name())
		if ext != logSuffix && ext != valueLogSuffix {
			continue
		}
		info, err := entry.Info()
		if err == nil && info.Size() == 0 {
			log.Warn("data directory: an empty log is removed", "log", entry.Name())
			err = os.Remove(filepath.Join(dir, entry.Name()))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDisk, err)
		}
	}
	return nil
}

// entryLength is the length of the whole entry that b begins with, 0 if there is none.
func entryLength(b []byte) int {
	const kinds = 2
	if len(b) < kinds+3 {
		return 0
	}
	at := kinds
	var numbers [3]uint64
	for i := range numbers {
		number, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return 0
		}
		numbers[i], at = number, at+n
	}
	key, value := numbers[0], numbers[1]
	rest := uint64(len(b) - at)
	if key == 0 || key > rest || value > rest || key+value+crc32.Size > rest {
		return 0
	}
	at += int(key + value)
	if crc32.Checksum(b[:at], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(b[at:]) {
		return 0
	}
	return at + crc32.Size
}

// lastWritten is where the zeros begin that fill the rest of the file.
func lastWritten(b []byte) int {
	end := len(b)
	for end > 0 && b[end-1] == 0 {
		end--
	}
	return end
}
