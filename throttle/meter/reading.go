package meter

import "github.com/mailgate/mailgate/throttle"

// A Reading is what a meter says of one key.
type Reading = throttle.Reading
