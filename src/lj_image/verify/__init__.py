"""An image becomes a VerifyReport: its promises, each compared with what is really inside.

In: `Subject` (plan, image id, expectations) and an engine. Out: `VerifyReport`. The one public function is
`runner.verify`. Facts are gathered in bulk through one exec channel; the tests in `suite/` only compare.
Never imports `release`, `cli`, `builders` or `registry`.
"""
