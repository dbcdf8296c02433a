package cache

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/table"
	"golang.org/x/sys/unix"
)

// Badger maps its tables into memory, and whatever it has written or read stays
// counted as memory of this process: after a flood, the whole store. pages takes it
// off the count again, ten times a second while there is work, and at once where so much
// is read that it would be a hundred megabytes by then. The data stays in the page cache,
// where the next read finds it.
type pages struct {
	db      *badger.DB
	dir     string
	touched atomic.Int32  // so many times since they were dropped
	many    chan struct{} // says that it was pagesAtOnce
	quit    chan struct{}
	done    chan struct{}
}

const pagesInterval = 100 * time.Millisecond

// pagesAtOnce are so many reads and writes that are let go before the interval is over. A
// read brings in a few times 64 KB at most.
const pagesAtOnce = 800

func dropPages(db *badger.DB, dir string) *pages {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.Abs(dir); err == nil {
		dir = real
	}
	p := &pages{db: db, dir: dir, many: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// touch notes that there is something to drop.
func (p *pages) touch() {
	if p != nil && p.touched.Add(1) == pagesAtOnce {
		select {
		case p.many <- struct{}{}:
		default:
		}
	}
}

// stop returns when no more will be dropped. It must come before Badger is closed.
func (p *pages) stop() {
	if p != nil {
		close(p.quit)
		<-p.done
	}
}

func (p *pages) run() {
	defer close(p.done)
	ticker := time.NewTicker(pagesInterval)
	defer ticker.Stop()
	for quiet := 0; ; {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
		case <-p.many:
		}
		// Compactions go on for a while after the last write.
		if quiet++; p.touched.Swap(0) > 0 {
			quiet = 0
		}
		if quiet < 100 {
			p.drop()
		}
	}
}

// drop must never advise on memory that is no longer a table: in its place there may
// be the heap. A table that was there before an iterator was opened and is there
// afterwards is held by the iterator, and stays mapped where it is.
func (p *pages) drop() {
	before := tableFiles(p.db)
	txn := p.db.NewTransactionAt(newest, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	after := tableFiles(p.db)

	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		if !bytes.HasSuffix(lines.Bytes(), []byte(tableSuffix)) {
			continue
		}
		start, length, path := mapping(lines.Text())
		name := filepath.Base(path)
		if before[name] && after[name] && filepath.Dir(path) == p.dir {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, length, unix.MADV_DONTNEED)
		}
	}
}

func tableFiles(db *badger.DB) map[string]bool {
	tables := db.Tables()
	names := make(map[string]bool, len(tables))
	for _, t := range tables {
		names[table.IDToFilename(t.ID)] = true
	}
	return names
}

// mapping reads a line of /proc/self/maps.
func mapping(line string) (start, length uintptr, path string) {
	var end uintptr
	if n, err := fmt.Sscanf(line, "%x-%x", &start, &end); n != 2 || err != nil {
		return 0, 0, ""
	}
	if slash := strings.IndexByte(line, '/'); slash >= 0 {
		path = line[slash:]
	}
	return start, end - start, path
}
