package cache

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// logOf is what a disk has written to its log, down to the zeros that fill the file: entries
// of several lengths, a removal among them, and Badger's mark behind each.
func logOf(f *testing.F) []byte {
	f.Helper()
	dir := f.TempDir()
	d, err := Open(DiskOptions{Dir: dir})
	if err != nil {
		f.Fatal(err)
	}
	for _, length := range []int{0, 1, 100, 300} {
		if err := d.put([]byte("key"), bytes.Repeat([]byte{'v'}, length), 1<<40); err != nil {
			f.Fatal(err)
		}
	}
	if err := d.delete([]byte("key")); err != nil {
		f.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*"+logSuffix))
	if err != nil || len(logs) != 1 {
		f.Fatalf("the logs are %v, %v", logs, err)
	}
	content, err := os.ReadFile(logs[0])
	if err != nil {
		f.Fatal(err)
	}
	if err := d.Close(); err != nil { // what goes on in the background is not to count as covered
		f.Fatal(err)
	}
	return content[:lastWritten(content)]
}

// Whatever a crash has left in a log, an entry is there to its end or it is none. Hardly an
// input has the checksum that makes it one, so each is tried with that behind it as well.
func FuzzEntryLength(f *testing.F) {
	log, entries := logOf(f), 0
	for at := logHeader; at < len(log); entries++ {
		length := entryLength(log[at:])
		if length == 0 {
			f.Fatalf("no entry at %d of %d", at, len(log))
		}
		entry := log[at : at+length]
		f.Add(entry)
		f.Add(entry[:length-crc32.Size]) // gets its checksum below
		f.Add(log[at:])
		at += length
	}
	if entries != 10 { // each write and its mark
		f.Fatalf("%d entries in the log, want 10", entries)
	}
	// Lengths of key and value that are beyond the rest, and whose sum is not.
	for _, lengths := range [][2]uint64{{1 << 63, 1 << 63}, {math.MaxUint64, 1}, {math.MaxUint64 - 3, 0}, {1, math.MaxUint64}} {
		f.Add(append(binary.AppendUvarint(binary.AppendUvarint([]byte{0, 0}, lengths[0]), lengths[1]), 0))
	}
	f.Add([]byte{0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 'k'})
	f.Add([]byte{0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 'k'})
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		checkEntryLength(t, b)
		checkEntryLength(t, binary.BigEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
	})
}

// checkEntryLength also looks that an entry has its key in it and ends where it says: what
// comes behind it is nothing to it, and with a byte less or a bit changed it is none.
func checkEntryLength(t *testing.T, b []byte) {
	t.Helper()
	length := entryLength(b)
	if length < 0 || length > len(b) {
		t.Fatalf("%x: an entry of %d bytes in %d", b, length, len(b))
	}
	if length == 0 {
		return
	}
	if key, _ := binary.Uvarint(b[2:]); key >= uint64(length) {
		t.Fatalf("%x: %d bytes, with a key of %d", b, length, key)
	}
	entry := bytes.Clone(b[:length])
	if alone := entryLength(entry); alone != length {
		t.Fatalf("%x: %d bytes, and alone %d", b, length, alone)
	}
	if cut := entryLength(entry[:length-1]); cut != 0 {
		t.Fatalf("%x: %d bytes, and %d where one is missing", b, length, cut)
	}
	entry[length-1] ^= 1
	if changed := entryLength(entry); changed != 0 {
		t.Fatalf("%x: %d bytes, and %d where one is another", b, length, changed)
	}
}
