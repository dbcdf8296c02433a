package api

import "bytes"

const twoLengths = "The request says in two ways how long it is."

// ambiguous reports whether a header says more than once, or in two ways, how long the
// body is. A proxy in front may have read it the other way, and then the end of one
// caller's request is the beginning of another's.
func ambiguous(header []byte) bool {
	said := 0
	for len(header) > 0 {
		line, rest, _ := bytes.Cut(header, []byte{'\n'})
		header = rest
		if len(line) > 0 && framing(line) {
			said++
		}
	}
	return said > 1
}

// framing reports whether a header line says how long the body is.
func framing(line []byte) bool {
	switch line[0] | 0x20 {
	case 'c':
		return startsAs(line, "content-length:")
	case 't':
		return startsAs(line, "transfer-encoding:")
	}
	return false
}

func startsAs(line []byte, name string) bool {
	return len(line) >= len(name) && bytes.EqualFold(line[:len(name)], []byte(name))
}
