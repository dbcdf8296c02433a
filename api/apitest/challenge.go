package apitest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/mailgate/mailgate/internal/must"
)

// Solve returns the token of the proof of work that a 403 offers, as a widget makes it.
func Solve(problem []byte) string {
	var asked struct {
		Challenge struct {
			ALTCHA map[string]any `json:"altcha"`
		} `json:"challenge"`
	}
	must.Have(0, json.Unmarshal(problem, &asked))
	c := asked.Challenge.ALTCHA
	for n := range int(c["maxnumber"].(float64)) + 1 {
		sum := sha256.Sum256([]byte(c["salt"].(string) + strconv.Itoa(n)))
		if hex.EncodeToString(sum[:]) == c["challenge"] {
			c["number"] = n
			return base64.StdEncoding.EncodeToString(must.Have(json.Marshal(c)))
		}
	}
	panic("no number solves the challenge")
}
