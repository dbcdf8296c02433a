package judge

import "fmt"

// keys: a key is one mail, and its answer stays the same byte for byte. One that a node
// made alone is that node's; one that the store may have forgotten is nobody's.
func (d *docket) keys() {
	first := map[string]*Call{}
	for i := range d.Calls {
		c := &d.Calls[i]
		if c.Key == "" || !c.charged() || (d.touched[c.Subject] && (d.Terms.Forgets || d.Terms.Leases && c.Status == 504)) {
			continue
		}
		name := c.Key
		if d.Terms.Alone && (c.Degraded || c.Status == 504 && d.touched[c.Subject]) {
			name = fmt.Sprint(c.Key, " at ", c.Node)
		}
		if before := first[name]; before == nil {
			first[name] = c
		} else if before.Body != c.Body || before.Status != c.Status {
			d.complain("keys", c.Subject, "the key %s was answered %d %s, and then %d %s", name, before.Status, before.Body, c.Status, c.Body)
		}
	}
}
