package cache

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mailgate/mailgate/servertest"
)

// What was written and read does not stay counted as memory of the process, and
// nothing is lost by it.
func TestTablesDoNotStayInMemory(t *testing.T) {
	const keys, most = 4_000, 100 // kB a table, of 500 and more
	dir := t.TempDir()
	d := writeTables(t, dir, keys)
	for round := range 3 {
		readAll(t, d, keys)
		servertest.Await(t, "the tables to leave memory", 20*time.Second, func() error {
			resident, tables := residentTables(t, dir)
			if tables > 0 && resident < most*tables {
				return nil
			}
			return fmt.Errorf("round %d: %d kB of %d tables stay", round, resident, tables)
		})
	}
}

// Where much is read nobody waits for the next interval: the worker is called, once until
// it has come.
func TestManyReadsCallTheWorker(t *testing.T) {
	p := &pages{many: make(chan struct{}, 1)}
	called := func() bool {
		select {
		case <-p.many:
			return true
		default:
			return false
		}
	}
	for range pagesAtOnce - 1 {
		p.touch()
	}
	if called() {
		t.Error("it is called too early")
	}
	for range 2 * pagesAtOnce {
		p.touch()
	}
	if !called() || called() {
		t.Error("it is not called once")
	}
}

// residentTables is how many kB of how many tables are in this process.
func residentTables(t *testing.T, dir string) (kB, tables int) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	inTable := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if _, length, path := mapping(line); length > 0 {
			inTable = filepath.Dir(path) == dir && filepath.Ext(path) == ".sst"
			if inTable {
				tables++
			}
		}
		if n, ok := strings.CutPrefix(line, "Rss:"); ok && inTable {
			var size int
			if _, err := fmt.Sscan(n, &size); err != nil {
				t.Fatal(err)
			}
			kB += size
		}
	}
	return kB, tables
}

// Pages are dropped all the time while tables are written, compacted, removed and
// read from several goroutines. If one advice ever met other memory than a table's,
// this would crash or read nonsense.
func TestPagesUnderLoad(t *testing.T) {
	dir := t.TempDir()
	d := open(t, DiskOptions{Dir: dir})
	const writers = 4
	keys := 2_000
	if testing.Short() {
		keys /= 2
	}
	var done sync.WaitGroup
	stop := make(chan struct{})
	var dropping sync.WaitGroup
	dropping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				d.pages.drop()
			}
		}
	})
	for range writers {
		done.Go(func() {
			for i := range keys {
				if err := d.put(diskKey(i), bytes.Repeat([]byte{byte(i)}, longValue), 1<<40); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	readAll(t, d, keys)
	close(stop)
	dropping.Wait()
	if _, tables := residentTables(t, dir); tables < 2 {
		t.Errorf("%d tables were written, which are too few to tell", tables)
	}
}
