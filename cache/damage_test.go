package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// The values of a test, in bytes: with long ones few keys fill a table.
const (
	shortValue = 100
	longValue  = 1000
)

// writeTables opens a disk with so many keys of long values in it, the most of them in tables.
func writeTables(t *testing.T, dir string, keys int) *Disk {
	t.Helper()
	d := fillDiskWith(t, dir, keys, longValue)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, DiskOptions{Dir: dir})
}

func fillDisk(t *testing.T, dir string, keys int) *Disk {
	t.Helper()
	return fillDiskWith(t, dir, keys, shortValue)
}

func fillDiskWith(t *testing.T, dir string, keys, length int) *Disk {
	t.Helper()
	d, err := Open(DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range keys {
		if err := d.put(diskKey(i), bytes.Repeat([]byte{byte(i)}, length), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func diskKey(i int) []byte { return fmt.Appendf(nil, "key%08d", i) }

func readAll(t *testing.T, d *Disk, keys int) {
	t.Helper()
	for i := range keys {
		found, err := d.get(diskKey(i), func(value []byte) error {
			length := len(value)
			if length != shortValue && length != longValue || value[0] != byte(i) || value[length-1] != byte(i) {
				return fmt.Errorf("key %d has the value %x", i, value)
			}
			return nil
		})
		if !found || err != nil {
			t.Fatal(i, found, err)
		}
	}
}

func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no file like %s: %v", pattern, err)
	}
	sort.Strings(paths)
	return paths
}

func sizeOf(t *testing.T, dir, pattern string) (bytes int64) {
	t.Helper()
	for _, path := range files(t, dir, pattern) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes
}

// killedAndClosed are directories with the same in them: what is left when a process is
// killed, and when it has closed the disk.
func killedAndClosed(t *testing.T, keys int) (killed, closed string) {
	t.Helper()
	closed = t.TempDir()
	d := fillDisk(t, closed, keys)
	killed = snapshot(t, closed)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return killed, closed
}

// snapshot copies what a process leaves behind that dies now.
func snapshot(t *testing.T, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// damage changes the first file like the pattern.
func damage(t *testing.T, dir, pattern string, change func(content []byte) []byte) {
	t.Helper()
	path := files(t, dir, pattern)[0]
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func cutTo(n int) func([]byte) []byte {
	return func(b []byte) []byte {
		if n < 0 {
			return b[:len(b)+n]
		}
		return b[:n]
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 0x55
		return b
	}
}

func zero(from, to int) func([]byte) []byte {
	return func(b []byte) []byte {
		clear(b[len(b)*from/100 : len(b)*to/100])
		return b
	}
}

// A table that is not whole would be left out by Badger, or read as far as it goes, or
// end the process. Here it is ErrCorrupt at Open, and nothing is removed.
func TestDamagedTables(t *testing.T) {
	whole := t.TempDir()
	if err := fillDisk(t, whole, 15_000).Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(dir string){
		"no manifest":       func(dir string) { remove1(t, dir, badger.ManifestFilename) },
		"empty manifest":    func(dir string) { damage(t, dir, badger.ManifestFilename, cutTo(0)) },
		"manifest magic":    func(dir string) { damage(t, dir, badger.ManifestFilename, flip(0)) },
		"manifest checksum": func(dir string) { damage(t, dir, badger.ManifestFilename, flip(-1)) },
		"manifest length":   func(dir string) { damage(t, dir, badger.ManifestFilename, flip(8)) },
		"manifest cut":      func(dir string) { damage(t, dir, badger.ManifestFilename, cutTo(-1)) },
		"manifest shorter":  func(dir string) { damage(t, dir, badger.ManifestFilename, withoutRecord) },
		"manifest zeroed":   func(dir string) { damage(t, dir, badger.ManifestFilename, zeroRecord) },
		"no table":          func(dir string) { remove1(t, dir, "*.sst") },
		"empty table":       func(dir string) { damage(t, dir, "*.sst", cutTo(0)) },
		"three bytes":       func(dir string) { damage(t, dir, "*.sst", cutTo(3)) },
		"half a table":      func(dir string) { damage(t, dir, "*.sst", func(b []byte) []byte { return b[:len(b)/2] }) },
		"a byte less":       func(dir string) { damage(t, dir, "*.sst", cutTo(-1)) },
		"all zeros":         func(dir string) { damage(t, dir, "*.sst", zero(0, 100)) },
		"zeros at the end":  func(dir string) { damage(t, dir, "*.sst", zero(50, 100)) },
		"zeros in between":  func(dir string) { damage(t, dir, "*.sst", zero(40, 42)) },
		"keys' registry":    func(dir string) { damage(t, dir, badger.KeyRegistryFileName, flip(20)) },
	}
	for _, at := range []int{0, 100, 4090, 100_000, -300, -200, -100, -50, -20, -12, -8, -4, -3, -1} {
		cases[fmt.Sprint("a byte at ", at)] = func(dir string) { damage(t, dir, "*.sst", flip(at)) }
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			dir := snapshot(t, whole)
			spoil(dir)
			before := listing(t, dir)
			d, err := Open(DiskOptions{Dir: dir})
			if err == nil {
				_ = d.Close()
			}
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v, want %v", err, ErrCorrupt)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("the directory has changed:\n%s\n%s", before, after)
			}
		})
	}
}

// lastRecord is where a manifest's last record begins: behind a head of 8 bytes each has its
// length, a checksum and its text.
func lastRecord(manifest []byte) (at int) {
	for next := 8; next < len(manifest); next += 8 + int(binary.BigEndian.Uint32(manifest[next:])) {
		at = next
	}
	return at
}

func withoutRecord(manifest []byte) []byte { return manifest[:lastRecord(manifest)] }

// zeroRecord leaves zeros that read as records.
func zeroRecord(manifest []byte) []byte { return append(withoutRecord(manifest), make([]byte, 16)...) }

// A process that was killed leaves a log, and tables that the manifest does not list are in it
// as well if they are not more than the logs that were being put in tables.
func TestManifestsCutAfterAKill(t *testing.T) {
	const keys = 20
	killed, closed := killedAndClosed(t, keys) // all in a log; all in a table
	logs := func(t *testing.T, names ...string) (dir string) {
		dir = snapshot(t, closed)
		log := files(t, killed, "*"+logSuffix)[0]
		for _, name := range names {
			copyFile(t, log, filepath.Join(dir, name))
		}
		damage(t, dir, lockFile, cutTo(0))
		return dir
	}
	for _, change := range []func([]byte) []byte{cutTo(-1), zeroRecord} {
		dir := logs(t, "00001.mem")
		damage(t, dir, badger.ManifestFilename, change)
		if _, err := Open(DiskOptions{Dir: dir}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "does not list: 1") {
			t.Errorf("a table that no log has: %v", err)
		}
	}
	dir := logs(t, "00001.mem", "00002.mem")
	damage(t, dir, badger.ManifestFilename, cutTo(-1))
	readAll(t, open(t, DiskOptions{Dir: dir}), keys)
}

// copyFile makes a copy of a file.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove1(t *testing.T, dir, pattern string) {
	t.Helper()
	if err := os.Remove(files(t, dir, pattern)[0]); err != nil {
		t.Fatal(err)
	}
}

// listing tells names and sizes of all that is in the directory.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	for _, path := range files(t, dir, "*") {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(info.Name(), " ", info.Size()))
	}
	return strings.Join(lines, "\n")
}

// A log that breaks off is what a power cut leaves. What comes before is kept, and the
// rest is not lost without a word.
func TestTornLogs(t *testing.T) {
	const keys = 2000
	crashed, _ := killedAndClosed(t, keys)
	for name, tc := range map[string]struct {
		spoil func([]byte) []byte
		kept  func(n int) bool
		says  string
	}{
		"whole":           {func(b []byte) []byte { return b }, func(n int) bool { return n == keys }, ""},
		"a byte flipped":  {flip(100_000), func(n int) bool { return n > 400 && n < keys-400 }, "breaks off"},
		"a page missing":  {func(b []byte) []byte { clear(b[65536:69632]); return b }, func(n int) bool { return n > 200 && n < keys-400 }, "breaks off"},
		"cut in an entry": {cutTo(100_001), func(n int) bool { return n > 400 && n < keys-400 }, "breaks off"},
		"only a header":   {cutTo(logHeader), func(n int) bool { return n == 0 }, ""},
		"not a header":    {cutTo(logHeader - 1), func(n int) bool { return n == 0 }, ""},
		"nothing":         {cutTo(0), func(n int) bool { return n == 0 }, "an empty log is removed"},
		"all zeros":       {zero(0, 100), func(n int) bool { return n == 0 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := snapshot(t, crashed)
			damage(t, dir, "*.mem", tc.spoil)
			var said bytes.Buffer
			d := open(t, DiskOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
			kept := 0
			for i := range keys {
				found, err := d.get(diskKey(i), func([]byte) error { return nil })
				if err != nil {
					t.Fatal(err)
				}
				if found {
					kept++
				}
				if found && kept != i+1 {
					t.Fatalf("key %d is there, but not all before it", i)
				}
			}
			if !tc.kept(kept) {
				t.Errorf("%d of %d kept", kept, keys)
			}
			if said := said.String(); !strings.Contains(said, tc.says) || (said == "") != (tc.says == "") || strings.Contains(said, "key0") {
				t.Errorf("the log says %q, want %q", said, tc.says)
			}
			if err := d.put(diskKey(keys), nil, 1000); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A process that ends between making a file and giving it its size.
func TestEmptyLogs(t *testing.T) {
	dir := t.TempDir()
	if err := fillDisk(t, dir, 10).Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"00077.mem", "000077.vlog", "000077.sst"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, DiskOptions{Dir: dir})
	if found, err := d.get(diskKey(9), func([]byte) error { return nil }); !found || err != nil {
		t.Fatal(found, err)
	}
}

// A log whose header is damaged names a secret that it would be encrypted with.
func TestLogOfAnotherStore(t *testing.T) {
	crashed, _ := killedAndClosed(t, 10)
	damage(t, crashed, "*.mem", flip(0))
	if _, err := Open(DiskOptions{Dir: crashed}); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
}

// A power cut may end a log at any byte. What was whole before it is kept, all of it and
// nothing else, and the log tells of a rest that is lost. Badger writes a mark behind each
// write, which is part of it.
func TestLogsCutAnywhere(t *testing.T) {
	const keys = 4
	crashed, _ := killedAndClosed(t, keys)
	content, err := os.ReadFile(files(t, crashed, "*.mem")[0])
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{logHeader}
	for n := entryLength(content[logHeader:]); n > 0; n = entryLength(content[ends[len(ends)-1]:]) {
		ends = append(ends, ends[len(ends)-1]+n)
	}
	entry := (ends[len(ends)-1] - logHeader) / keys // with its mark
	steps := 6
	if testing.Short() {
		steps = 3
	}
	for cut := logHeader; cut < ends[len(ends)-1]; cut += 1 + entry/steps {
		dir := snapshot(t, crashed)
		damage(t, dir, "*.mem", func(b []byte) []byte { clear(b[cut:]); return b })
		var said bytes.Buffer
		d, err := Open(DiskOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		for i := range keys {
			found, err := d.get(diskKey(i), func([]byte) error { return nil })
			if want := diskKeyEnd(content, ends, i) <= cut; found != want || err != nil {
				t.Errorf("cut at %d: key %d is there: %v, %v, want %v", cut, i, found, err, want)
			}
		}
		if torn := !slices.Contains(ends, cut); torn != strings.Contains(said.String(), "breaks off") {
			t.Errorf("cut at %d: the log says %q", cut, &said)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// diskKeyEnd is where the write of a key ends in a log.
func diskKeyEnd(content []byte, ends []int, key int) int {
	for i := range len(ends) - 2 {
		if bytes.Contains(content[ends[i]:ends[i+1]], diskKey(key)) {
			return ends[i+2]
		}
	}
	return math.MaxInt
}
