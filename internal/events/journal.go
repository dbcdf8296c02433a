package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mailgate/mailgate/internal/filelock"
)

// journal keeps what waits in files of lines. A line is an event, as event.line writes it, or says that one
// was handed over: "done" and its place. A file is removed when nothing in it waits, with the done lines in
// it; an event of an older file may then be sent again after the next start. A line that a killed process
// left unfinished is ignored, as each process begins a file of its own.
type journal struct {
	dir     string
	most    int64
	lock    *os.File
	files   map[*segment]bool
	current *segment // is written; nil: the next line begins one
	file    *os.File // of the current one
	next    int      // its number
	size    int64    // of all files
}

// segment is one file. Only the current one is open, so that they can be many.
type segment struct {
	number  int
	size    int64
	waiting int // events in it
}

// place is where an event is.
type place struct {
	in     *segment
	at     int64
	length int
}

const (
	suffix   = ".events"
	lockName = "in-use"
	// segmentBytes is the size of a file, which is as much as one event that waits holds back.
	segmentBytes = 64 << 10
)

var (
	errFull  = errors.New("the journal is full")
	errLine  = errors.New("a line of the journal is damaged")
	errInUse = errors.New("another process uses this directory")
)

// openJournal returns the events that wait, the oldest first.
func openJournal(dir string, most int64) (_ *journal, waiting []event, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{dir: dir, most: most, lock: lock, files: map[*segment]bool{}}
	free, err := filelock.Take(lock)
	if err == nil && !free {
		err = errInUse
	}
	if err == nil {
		waiting, err = j.load()
	}
	if err != nil {
		return nil, nil, errors.Join(err, j.close())
	}
	return j, waiting, nil
}

// load reads all files.
func (j *journal) load() ([]event, error) {
	names, err := filepath.Glob(filepath.Join(j.dir, "*"+suffix)) // in the order of their numbers
	if err != nil {
		return nil, err
	}
	var all []event
	done := map[string]bool{}
	for _, name := range names {
		number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), suffix))
		if err != nil {
			continue // it is none of these files
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s := &segment{number: number}
		j.files[s] = true
		all = append(all, s.parse(text, done)...)
		j.size, j.next = j.size+s.size, number+1
	}
	waiting := slices.DeleteFunc(all, func(e event) bool { return done[e.at.name()] })
	for _, e := range waiting {
		e.at.in.waiting++
	}
	for s := range j.files {
		if s.waiting == 0 {
			err = errors.Join(err, j.remove(s))
		}
	}
	return waiting, err
}

// parse returns the events of a file, and notes the places of those that are done.
func (s *segment) parse(text []byte, done map[string]bool) (all []event) {
	s.size = int64(len(text))
	for at := 0; at < len(text); {
		length := bytes.IndexByte(text[at:], '\n') + 1
		if length == 0 {
			break
		}
		line := text[at : at+length]
		if where, ok := bytes.CutPrefix(line, []byte("done ")); ok {
			done[string(bytes.TrimSpace(where))] = true
		} else if e, _, _, err := parseLine(line); err == nil {
			e.at = place{s, int64(at), length}
			all = append(all, e)
		}
		at += length
	}
	return all
}

func (p place) name() string { return fmt.Sprintf("%d %d", p.in.number, p.at) }

// add appends an event of which a part of the journal, of 1, may be full.
func (j *journal) add(line []byte, part float64) (place, error) {
	if float64(j.size)+float64(len(line)) > part*float64(j.most) {
		return place{}, errFull
	}
	p, err := j.append(line)
	if err == nil {
		p.in.waiting++
	}
	return p, err
}

func (j *journal) append(line []byte) (p place, err error) {
	if s := j.current; s != nil && s.size+int64(len(line)) > segmentBytes {
		_ = j.rotate()
	}
	if j.current == nil {
		s := &segment{number: j.next}
		j.next++
		if j.file, err = os.OpenFile(j.path(s), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600); err != nil {
			return p, err
		}
		j.current, j.files[s] = s, true
	}
	s := j.current
	p = place{s, s.size, len(line)}
	n, err := j.file.Write(line)
	s.size, j.size = s.size+int64(n), j.size+int64(n)
	if err != nil {
		_ = j.rotate() // what follows an unfinished line would be a part of it
	}
	return p, err
}

// rotate has the next line begin a file. One that cannot be removed is left to the next start.
func (j *journal) rotate() error {
	s := j.current
	j.current = nil
	err := j.file.Close()
	if s.waiting == 0 {
		err = errors.Join(err, j.remove(s))
	}
	return err
}

func (j *journal) path(s *segment) string {
	return filepath.Join(j.dir, fmt.Sprintf("%016d%s", s.number, suffix))
}

func (j *journal) remove(s *segment) error {
	delete(j.files, s)
	j.size -= s.size
	return os.Remove(j.path(s))
}

// read returns what is posted of an event.
func (j *journal) read(p place) (id string, body []byte, err error) {
	file, err := os.Open(j.path(p.in))
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	line := make([]byte, p.length)
	if _, err := file.ReadAt(line, p.at); err == io.EOF {
		return "", nil, errLine
	} else if err != nil {
		return "", nil, err
	}
	_, id, body, err = parseLine(line)
	return id, body, err
}

// done notes that an event waits no longer.
func (j *journal) done(p place) error {
	p.in.waiting--
	if p.in.waiting == 0 && p.in != j.current {
		return j.remove(p.in)
	}
	_, err := j.append([]byte("done " + p.name() + "\n"))
	return err
}

// close removes the file that is written if nothing in it waits.
func (j *journal) close() (err error) {
	if j.current != nil {
		err = j.rotate()
	}
	return errors.Join(err, filelock.Release(j.lock))
}
