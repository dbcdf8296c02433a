package api

import (
	"bytes"
	"strings"
)

// readBody reads a request that has a JSON object for its body.
func readBody(in *incoming, fields []field) error {
	if err := checkEncoding(in); err != nil {
		return err
	}
	if !isJSON(in.header.ContentType()) {
		return &problem{kind: badRequest, detail: "The Content-Type must be application/json, in UTF-8."}
	}
	return readObject(in.body, fields)
}

// checkEncoding refuses a body that is not plain by its header, even if it is empty. A
// compressed one could be large beyond its limit once opened.
func checkEncoding(in *incoming) error {
	if len(in.header.PeekAll("Content-Encoding")) > 0 {
		return &problem{kind: badRequest, detail: "The body must not be encoded: leave Content-Encoding out."}
	}
	return nil
}

func isJSON(contentType []byte) bool {
	if bytes.Equal(contentType, []byte(jsonType)) {
		return true
	}
	name, parameter, has := strings.Cut(strings.ToLower(string(contentType)), ";")
	if strings.TrimSpace(name) != jsonType {
		return false
	}
	charset, ok := strings.CutPrefix(strings.TrimSpace(parameter), "charset=")
	return !has || ok && strings.Trim(charset, `"`) == "utf-8"
}
