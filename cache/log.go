package cache

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// checkLog returns ErrCorrupt if a process that was killed cannot have left this log of SQLite.
// SQLite itself takes the first frame that is not whole for the end of the log; a crash leaves no
// whole ones behind it.
func checkLog(path string) error {
	const headerSize, frameHeaderSize, sumsAt = 32, 24, 16
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
	frame, bad := make([]byte, frameHeaderSize+int(size)), -1
	for i := 0; ; i++ {
		if _, err := io.ReadFull(from, frame); err == io.EOF || err == io.ErrUnexpectedEOF {
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
