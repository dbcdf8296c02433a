package cache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/servertest"
)

// open opens a disk for as long as the test runs.
func open(t testing.TB, o DiskOptions) *Disk {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestInUse(t *testing.T) {
	if dir := servertest.ChildDir(); dir != "" {
		open(t, DiskOptions{Dir: dir})
		fmt.Println("holding")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	t.Run("by this process", func(t *testing.T) {
		dir := t.TempDir()
		m := openMap(t, open(t, DiskOptions{Dir: dir}), "one")
		set(t, m, "key", 1)
		if _, err := Open(DiskOptions{Dir: dir}); !errors.Is(err, ErrInUse) {
			t.Fatalf("opened twice: %v", err)
		}
		set(t, m, "key", 2)
		expect(t, m, "key", 2)
	})
	inUseByAnother(t, false)
	inUseByAnother(t, true)
}

// inUseByAnother is by another process, which in the end is killed or closes the directory.
func inUseByAnother(t *testing.T, killed bool) {
	dir := t.TempDir()
	other := servertest.Child(t, dir)
	stop, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "holding" {
	}
	if lines.Text() != "holding" {
		t.Fatalf("it ended, %v", lines.Err())
	}
	if _, err := Open(DiskOptions{Dir: dir}); !errors.Is(err, ErrInUse) {
		t.Errorf("opened while another process has it: %v", err)
	}
	end := stop.Close
	if killed {
		end = other.Process.Kill
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); (err != nil) != killed {
		t.Fatalf("the other process: %v", err)
	}
	open(t, DiskOptions{Dir: dir})
}

func TestDirectoriesThatWillNotDo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir  string
		kind error
		says string
	}{
		"no name": {"", nil, "no directory was named"},
		"a file":  {file, ErrDisk, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(DiskOptions{Dir: tc.dir})
			if err == nil || tc.kind != nil && !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%v; want %v, %q", err, tc.kind, tc.says)
			}
		})
	}
}

// What is on disk survives the process, and what was there before a crash of the
// process too; what is in memory does not.
func TestReopening(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		d, err := Open(DiskOptions{Dir: dir, Sync: round == 1})
		if err != nil {
			t.Fatal(err)
		}
		m := openMap(t, d, "one")
		for i := range round {
			expect(t, m, fmt.Sprint("key", i), i)
		}
		set(t, m, fmt.Sprint("key", round), round)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatalf("closing again: %v", err)
		}
	}
	d := open(t, DiskOptions{Dir: Memory})
	m := openMap(t, d, "one")
	set(t, m, "key", 1)
	expect(t, m, "key", 1)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	expectAbsent(t, openMap(t, open(t, DiskOptions{Dir: Memory}), "one"), "key")
}

// A closed disk under an open map answers, with ErrClosed.
func TestClosedDisk(t *testing.T) {
	for _, dir := range []string{Memory, t.TempDir()} {
		d := open(t, DiskOptions{Dir: dir})
		m := openMap(t, d, "one")
		set(t, m, "key", 1)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := m.Get(context.Background(), "other", at(0)); !errors.Is(err, ErrClosed) {
			t.Errorf("get: %v", err)
		}
		for name, edit := range map[string]Edit[int]{"put": Put(2, never), "remove": Remove[int]()} {
			if err := m.Update(context.Background(), "key", at(0), func(int, bool, int64) Edit[int] { return edit }); !errors.Is(err, ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestTooLong(t *testing.T) {
	d := open(t, DiskOptions{Dir: t.TempDir()})
	long := strings.Repeat("secret", maxKey/6+1)
	for name, err := range map[string]error{
		"key":   d.put([]byte(long), nil, 1000),
		"value": d.put([]byte("key"), make([]byte, maxValue+1), 1000),
	} {
		if !errors.Is(err, ErrTooLong) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	value := make([]byte, maxValue)
	if err := d.put([]byte(long[:maxKey]), value, 1000); err != nil {
		t.Fatal(err)
	}
	found, err := d.get([]byte(long[:maxKey]), func(b []byte) error {
		if len(b) != len(value) {
			t.Errorf("%d bytes came back of %d", len(b), len(value))
		}
		return nil
	})
	if !found || err != nil {
		t.Fatal(found, err)
	}
	if found, err := d.get([]byte(long+long), nil); found || err != nil {
		t.Fatal(found, err)
	}
}
