package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
)

// What goes bad while the disk is open is found when its table is read again. Then nothing that
// would have to ask the disk is answered, and the next Open says why.
func TestATableGoesBad(t *testing.T) {
	dir := t.TempDir()
	if err := fillDisk(t, dir, 600).Close(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	d := open(t, DiskOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
	m := openMap(t, d, "one")
	set(t, m, "key", 1)
	spoilInPlace(t, files(t, dir, "*"+tableSuffix)[0], 1000)
	for range d.watch.tables() {
		d.watch.look()
	}
	_, getErr := d.get(diskKey(0), func([]byte) error { return nil })
	_, listErr := d.list(nil, nil, 1, func(_, _ []byte) error { return nil })
	for name, err := range map[string]error{
		"get":   getErr,
		"list":  listErr,
		"put":   d.put(diskKey(0), nil, 1000),
		"ready": d.Ready(t.Context()),
		"update": m.Update(context.Background(), "key", at(0), func(int, bool, int64) Edit[int] {
			return Put(2, never)
		}),
	} {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v, want %v", name, err, ErrCorrupt)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if strings.Count(said.String(), "gone bad") != 1 || strings.Contains(said.String(), "key0") {
		t.Errorf("the log says %q", &said)
	}
	if _, err := Open(DiskOptions{Dir: dir}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("opened again: %v, want %v", err, ErrCorrupt)
	}
}

// A table that has gone bad may be made another at the close, which lacks the rest and is whole:
// the next Open says all the same what there was.
func TestATableThatWentBadIsNotForgotten(t *testing.T) {
	dir := t.TempDir()
	const before = 3 // with one more, at its close, Badger makes one table of them
	for range before {
		if err := fillDisk(t, dir, 200).Close(); err != nil {
			t.Fatal(err)
		}
	}
	d := openUnwatched(t, dir)
	if err := d.put(diskKey(0), nil, 1<<40); err != nil {
		t.Fatal(err)
	}
	spoilInPlace(t, files(t, dir, "*"+tableSuffix)[0], 1000)
	for range d.watch.tables() {
		d.watch.look()
	}
	if err := d.watch.damage(); err == nil {
		t.Fatal("it was not found")
	}
	d.watch.look() // which says nothing else of the directory
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(DiskOptions{Dir: dir}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "went bad while it was open") {
		t.Errorf("opened again: %v, want %v", err, ErrCorrupt)
	}
}

// openUnwatched opens a disk that is looked at only when the test does.
func openUnwatched(t *testing.T, dir string) *Disk {
	t.Helper()
	d := open(t, DiskOptions{Dir: dir})
	d.watch.stop()
	return d
}

// spoilInPlace changes a byte of a file that may be mapped, which must never become shorter.
func spoilInPlace(t *testing.T, path string, at int64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x55
	if _, err := file.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// Tables that come and go under the watch, and a directory that is away for a while, are no
// damage.
func TestTablesThatComeAndGo(t *testing.T) {
	dir := t.TempDir() + "/data"
	d := openUnwatched(t, dir)
	seen := map[uint64]bool{}
	for i := range 12 * memTableSize / maxValue {
		if err := d.put(diskKey(i%20), make([]byte, maxValue), 1<<40); err != nil {
			t.Fatal(err)
		}
		d.watch.look()
		seen[d.watch.table] = true
	}
	if len(seen) < 3 {
		t.Fatalf("only the tables %v were read", seen)
	}
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	for range d.watch.tables() {
		d.watch.look()
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	expectReady(t, d, nil)
	for range d.watch.tables() {
		d.watch.look()
	}
	if err := d.watch.damage(); err != nil {
		t.Fatal(err)
	}
}

// Each table has its turn.
func TestTheWatchReadsAllTables(t *testing.T) {
	dir := t.TempDir()
	for range 3 { // Badger makes a table when it is closed
		if err := fillDisk(t, dir, 20).Close(); err != nil {
			t.Fatal(err)
		}
	}
	d := openUnwatched(t, dir)
	tables := d.watch.tables()
	read := map[string]int{}
	for range 2 * len(tables) {
		d.watch.look()
		read[fmt.Sprint(d.watch.table)]++
	}
	if len(tables) < 3 || len(read) != len(tables) {
		t.Errorf("of the tables %v were read %v", tables, read)
	}
}
