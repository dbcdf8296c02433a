package cache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// checkLog returns ErrCorrupt if a process that was killed cannot have left this log of SQLite.
// SQLite itself takes the first frame that is not whole for the end of the log. A crash leaves no
// whole ones behind it, and none before it that the index has not.
func checkLog(path, indexPath string) error {
	const headerSize, frameHeaderSize, sumsAt = 32, 24, 16
	index, err := readIndex(indexPath)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return fileError(err)
	}
	defer file.Close()
	from := bufio.NewReaderSize(file, 1<<20)
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(from, header); err != nil {
		return fmt.Errorf("%w: %s has no header", ErrCorrupt, path)
	}
	magic, size := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[8:])
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 != 0 {
		order = binary.BigEndian
	}
	sums := logSums{}.add(order, header[:24])
	if magic>>1 != 0x377f0682>>1 || sums != readSums(header[24:]) || size > 1<<16 {
		return fmt.Errorf("%w: the header of %s has changed", ErrCorrupt, path)
	}
	salts := [8]byte(header[16:24])
	if index.frames > 0 && index.salts != salts { // without frames the header of the log may be older
		return fmt.Errorf("%w: %s is another log than the one of %s", ErrCorrupt, path, indexPath)
	}
	frame, bad := make([]byte, frameHeaderSize+int(size)), -1
	for i := 0; ; i++ {
		if _, err := io.ReadFull(from, frame); err == io.EOF || err == io.ErrUnexpectedEOF {
			if bad < 0 {
				bad = i
			}
			if bad < index.frames {
				return fmt.Errorf("%w: %s has %d whole writes, and had %d", ErrCorrupt, path, bad, index.frames)
			}
			return nil
		} else if err != nil {
			return err
		}
		written := readSums(frame[sumsAt:])
		whole := [8]byte(frame[8:16]) == salts && sums.add(order, frame[:8]).add(order, frame[frameHeaderSize:]) == written
		commits := binary.BigEndian.Uint32(frame[4:]) != 0 // others may be of a transaction that was given up
		switch {
		case !whole && bad < 0:
			bad = i
		case whole && commits && bad >= 0:
			return fmt.Errorf("%w: %s has changed at write %d, and whole ones follow", ErrCorrupt, path, bad+1)
		}
		sums = written
	}
}

// logIndex is how far the log was written, as of the last change that was acknowledged.
type logIndex struct {
	frames int
	salts  [8]byte
}

// readIndex reads the header of SQLite's index of the log. It is there twice, since a process may be killed
// while it writes one of them. Without either, as in a copy of the other files, nothing is known.
func readIndex(path string) (logIndex, error) {
	const size, framesAt, saltsAt, sumsAt = 48, 16, 32, 40
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return logIndex{}, fileError(err)
	}
	for ; len(b) >= size; b = b[size:min(2*size, len(b))] {
		native := binary.NativeEndian
		sums := logSums{native.Uint32(b[sumsAt:]), native.Uint32(b[sumsAt+4:])}
		if sums != (logSums{}) && sums == (logSums{}).add(native, b[:sumsAt]) {
			return logIndex{int(native.Uint32(b[framesAt:])), [8]byte(b[saltsAt : saltsAt+8])}, nil
		}
	}
	return logIndex{}, nil
}

// logSums are the checksum of SQLite's log, which runs on from frame to frame.
type logSums [2]uint32

func readSums(b []byte) logSums {
	return logSums{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])}
}

func (s logSums) add(order binary.ByteOrder, b []byte) logSums {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
	return s
}
