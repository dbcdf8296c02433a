package cache

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4/y"
)

// Badger's own formats, with what it hands to them: no key is said, in any of the ways in
// which it spells one.
func TestBadgerSaysNoKeys(t *testing.T) {
	const key = "alice@example.com"
	type keyRange struct {
		left, right []byte
		inf         bool
	}
	type compactDef struct {
		compactorId          int
		thisRange, nextRange keyRange
		splits               []keyRange
		dropPrefixes         [][]byte
	}
	reach := keyRange{left: []byte(key), right: []byte(key)}
	def := compactDef{compactorId: 1, thisRange: reach, splits: []keyRange{reach}, dropPrefixes: [][]byte{[]byte(key)}}
	full := &fs.PathError{Op: "open", Path: "data/000012.sst", Err: syscall.ENOSPC}
	failed := y.Wrapf(full, "while running compactions for: %+v", def)
	read := y.Wrapf(y.Wrapf(y.Wrapf(y.ErrChecksumMismatch, "actual: %d, expected: %d", 1, 2), "get key: %q", key), "DB::Get key: %q", key)
	levels := fmt.Errorf("Inter: Biggest(j-1)[%d] \n%s\n vs Smallest(j)[%d]: \n%s\n: level=%d j=%d numTables=%d", 1, hex.Dump([]byte(key)), 2, hex.Dump([]byte(key)), 1, 2, 3)
	for _, tt := range []struct {
		format string
		args   []any
		want   string
	}{
		{"[Compactor: %d] LOG Compact FAILED with error: %+v: %+v", []any{1, failed, def},
			"[Compactor: 1] LOG Compact FAILED with error: no space left on device: …"},
		{"While running doCompact: %v\n", []any{failed}, "While running doCompact: no space left on device"},
		{"While running compact def: %+v. Error: %v", []any{def, failed}, "While running compact def: …. Error: no space left on device"},
		{"error flushing memtable to disk: %v, retrying", []any{full}, "error flushing memtable to disk: no space left on device, retrying"},
		{"writeRequests: %v", []any{errors.New(key)}, "writeRequests: …"},
		{"writeRequests: %v", []any{levels}, "writeRequests: …"},
		{"While reading key: %x, got error: %v", []any{[]byte(key), read}, "While reading key: …, got error: checksum mismatch"},
		{"Unable to read: Key: %v, Version : %v, meta: %v, userMeta: %v" + " Error: %v", []any{[]byte(key), uint64(3), byte(4), byte(5), read},
			"Unable to read: Key: …, Version : 3, meta: 4, userMeta: 5 Error: checksum mismatch"},
		{"First key=%q\n", []any{[]byte(key)}, "First key=…"},
		{"This Range (numTables: %d)\nLeft:\n%s\nRight:\n%s\n", []any{7, hex.Dump([]byte(key)), hex.Dump([]byte(key))},
			"This Range (numTables: 7)\nLeft:\n…\nRight:\n…"},
		{"Sent range %d for iteration: [%x, %x) of size: %s\n", []any{1, []byte(key), []byte(key), "1 MiB"},
			"Sent range 1 for iteration: […, …) of size: …"},
		{"DropPrefix called for %s", []any{[][]byte{[]byte(key)}}, "DropPrefix called for …"},
		{"L0 was stalled for %s\n", []any{1500 * time.Millisecond}, "L0 was stalled for 1.5s"},
		{"Discard: %d less than threshold: %.0f for file: %s", []any{int64(1), 2.5, key}, "Discard: 1 less than threshold: 2 for file: …"},
		{"Writes flushed. Stopping compactions now...", nil, "Writes flushed. Stopping compactions now..."},
	} {
		var said bytes.Buffer
		b := badgerLog{slog.New(slog.NewJSONHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		for level, say := range map[string]func(string, ...any){"ERROR": b.Errorf, "WARN": b.Warningf, "DEBUG": b.Infof} {
			said.Reset()
			say(tt.format, tt.args...)
			line := said.String()
			for _, spelt := range []string{key, "alice", hex.EncodeToString([]byte("alice")), "61 6c 69", "97 108 105", "0x61"} {
				if strings.Contains(line, spelt) {
					t.Errorf("%q: the log says %s", tt.format, line)
				}
			}
			if want := fmt.Sprintf(`"level":"%s","msg":"data directory","badger":%s`, level, quoted(tt.want)); !strings.Contains(line, want) {
				t.Errorf("%q: the log says %s, want %s", tt.format, line, want)
			}
		}
	}
}

// quoted is a text as the log has it.
func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }
