"""From what systems export about rights to the entries and groups of our messages: one module a system, all pure.

Policy. What a module does not understand is not dropped in silence: an allow becomes an entry that names nobody, which
`mirror` leaves out with a warning, and a deny becomes one for which `mirror` closes the object. What cannot be read at
all is None, an ACL that could not be read. Everyone-groups get the members that a directory lists for them; nobody is
in one because of what an address looks like.
"""
