# SPDX-License-Identifier: Apache-2.0
"""Faults in the communication of a program: one call of one rank in one step is left out or made with another argument.

Each function changes the syntax tree of a skeleton and returns an Expectation, or None if the skeleton has no such call.
"""
import ast
import copy
import dataclasses

import calls

SENDS, RECEIVES = {"send", "isend", "issend"}, {"recv", "irecv"}
NEED_OTHERS = calls.COLLECTIVE | SENDS | RECEIVES | {"sendrecv", "start", "post", "start_epoch", "recv_any", "recv_order"}
STEPS = 24
ROOTED, REDUCTIONS = {"bcast", "reduce", "gather"}, {"reduce", "allreduce"}
PEER = {"send": 0, "isend": 1, "issend": 1, "recv": 0, "irecv": 1, "sendrecv": 0}


@dataclasses.dataclass
class Expectation:
    """`ranks`: culprits that are right besides the exact set {culprit}: each non-empty subset of it. `may_end`: the program may
    also end by itself with wrong results, and then needs no verdict. `big`: messages are too long to be sent at once."""
    classes: set
    culprit: int
    ranks: set = dataclasses.field(default_factory=set)
    may_end: bool = False
    big: bool = False
    pace: int = 0
    objects: bool = True


@dataclasses.dataclass
class Site:
    """A call: function, the list of statements that has it, its index there, the ranks that make it, whether it is in a loop over
    ranks, and in one over steps."""
    function: str
    where: list
    index: int
    ranks: list
    loop: bool
    repeated: bool
    node: ast.Call

    @property
    def name(self):
        return self.node.func.id


def evaluate(node, rank, size, step):
    names = {"rank": rank, "size": size, "step": step, "left": (rank + size - 1) % size, "right": (rank + 1) % size, "columns": 2 - size % 2, "width": 1,
             "half": size // 2, "flag": 1, "entered": 0, "sent": 0, "jobs": 99, "got": 1, "steps": 99, "i": size - 1, "target": (rank + step) % size, "source": 0}
    return eval(compile(ast.Expression(node), "skeleton", "eval"), {"__builtins__": {}}, names)  # pylint: disable=eval-used


def sites(tree, names, size, step):
    """All calls of `names` that some rank makes in that step."""
    found = []

    def visit(function, statements, ranks, loop, repeated):
        for index, statement in enumerate(statements):
            if isinstance(statement, ast.If):
                taken = [rank for rank in ranks if evaluate(statement.test, rank, size, step)]
                visit(function, statement.body, taken, loop, repeated)
                visit(function, statement.orelse, [rank for rank in ranks if rank not in taken], loop, repeated)
            elif isinstance(statement, (ast.For, ast.While)):
                visit(function, statement.body, ranks, loop or (isinstance(statement, ast.For) and statement.target.id == "i"), True)
            elif isinstance(statement, ast.Expr) and statement.value.func.id in names and ranks:
                found.append(Site(function, statements, index, ranks, loop, repeated, statement.value))

    callers = {}
    for function in tree.body:
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                callers[node.func.id] = function
    for function in tree.body:
        ranks = list(range(size))
        if function.name in callers:
            outer = []
            for site in sites_of_call(callers[function.name], function.name, size, step):
                outer += site
            ranks = sorted(set(outer))
        visit(function.name, function.body, ranks, False, function.name != "main")
    return found


def sites_of_call(caller, name, size, step):
    """The ranks that call `name` in `caller`, a list for each call."""
    def visit(statements, ranks):
        for statement in statements:
            if isinstance(statement, ast.If):
                taken = [rank for rank in ranks if evaluate(statement.test, rank, size, step)]
                yield from visit(statement.body, taken)
                yield from visit(statement.orelse, [rank for rank in ranks if rank not in taken])
            elif isinstance(statement, (ast.For, ast.While)):
                yield from visit(statement.body, ranks)
            elif isinstance(statement, ast.Expr) and statement.value.func.id == name:
                yield ranks
    return list(visit(caller.body, list(range(size))))


def parsed(text):
    return ast.parse(text).body[0]


def marked(node):
    node.fault = True
    return node


def condition(culprit, step, site=None):
    return f"rank == {culprit}" + (f" and step == {step}" if not site or site.repeated else "") + (" and i == size - 1" if site and site.loop else "")


def branch(site, culprit, step, instead):
    """The rank does `instead` (None: nothing) in that step, and all others what they did."""
    choice = parsed(f"if {condition(culprit, step, site)}:\n    note()\nelse:\n    pass")
    if instead is not None:
        choice.body.append(marked(instead))
    choice.orelse = [marked(site.where[site.index])]
    site.where[site.index] = marked(choice)


class Mutator:
    """Random choices in one skeleton for `size` ranks; the fault is in `step`."""

    def __init__(self, tree, random, size, step):
        self.tree, self.random, self.size, self.step = tree, random, size, step

    def choose(self, names, fits=lambda site: True):
        found = [site for site in sites(self.tree, names, self.size, self.step) if fits(site)]
        if not found:
            return None, None
        site = self.random.choice(found)
        return site, self.random.choice(site.ranks)

    def changed(self, site, culprit, position=None, value=None, **keywords):
        """The rank makes the call with another argument."""
        node = copy.deepcopy(site.where[site.index])
        if position is not None:
            node.value.args[position] = ast.parse(value, mode="eval").body
        node.value.keywords = [one for one in node.value.keywords if one.arg not in keywords] + [ast.keyword(name, ast.Name(text)) for name, text in keywords.items()]
        branch(site, culprit, self.step, node)

    def skip(self, names, classes, swallow=False, **more):
        site, culprit = self.choose(names)
        if site is None:
            return None
        if swallow:
            call = ast.Call(ast.Name("skipped_by_exception"), [ast.parse(condition(culprit, self.step, site), mode="eval").body, site.node], [])
            site.where[site.index] = marked(ast.Expr(call))
        else:
            branch(site, culprit, self.step, None)
        # A broadcast that one rank misses need not stop the others.
        return Expectation(set(classes), culprit, may_end=site.name == "bcast", **more)

    def skipped_collective(self):
        return self.skip(calls.COLLECTIVE - {"fence", "write_at_all", "ibarrier"}, {"mismatch", "deadlock"})

    def swallowed_exception(self):
        return self.skip(calls.COLLECTIVE - {"iallreduce", "ibarrier"}, {"mismatch", "deadlock"}, swallow=True)

    def skipped_write(self):
        return self.skip({"write_at_all"}, {"mismatch", "deadlock"})

    def skipped_fence(self):
        return self.skip({"fence"}, {"mismatch", "deadlock"})

    def skipped_ibarrier(self):
        return self.skip({"ibarrier"}, {"mismatch", "deadlock"})

    def missing_send(self):
        # Nobody knows of a missing message of a sparse exchange.
        return self.skip(SENDS - {"issend"}, {"unmatched message", "deadlock"})

    def missing_start(self):
        site, culprit = self.choose({"start"}, lambda site: evaluate(site.node.args[0], 0, self.size, 0) >= 2)
        if site is None:
            return None
        branch(site, culprit, self.step, None)
        return Expectation({"unmatched message", "deadlock"}, culprit)

    def missing_receive(self):
        site, culprit = self.choose(RECEIVES)
        if site is None or self.is_send_cycle():
            return None
        # The rank may next wait for a later message of the same peer; then nothing shows which of the two is at fault.
        ranks = {culprit, self.peer(site, culprit)}
        branch(site, culprit, self.step, None)
        return Expectation({"unmatched message", "deadlock", "starvation"}, culprit, ranks, big=True)

    def missing_wait(self):
        site, culprit = self.choose({"waitall"}, lambda site: site.function != "sweep")
        if site is None:
            return None
        branch(site, culprit, self.step, None)
        # The messages arrive nevertheless: only data may be wrong, and there is nothing to report.
        return Expectation(set(), culprit, may_end=True)

    def missing_unlock(self):
        # MPI does not say in which call the next origin waits, and the next lock of the rank may be erroneous.
        return self.skip({"unlock"}, {"deadlock", "communication hang", "crash"})

    def missing_post(self):
        # MPI_Win_wait of the rank is then erroneous as well.
        return self.skip({"post"}, {"deadlock", "unmatched message", "communication hang", "crash"})

    def missing_complete(self):
        # The next MPI_Win_start of the rank is erroneous as well.
        return self.skip({"complete"}, {"deadlock", "unmatched message", "communication hang", "crash"})

    def peer(self, site, culprit):
        return evaluate(site.node.args[PEER[site.name]], culprit, self.size, self.step)

    def wrong_tag(self):
        site, culprit = self.choose(SENDS | RECEIVES | {"sendrecv"})
        if site is None:
            return None
        position = PEER[site.name] + 1
        # Nothing shows which of the two tags is wrong.
        ranks = {culprit, self.peer(site, culprit)}
        self.changed(site, culprit, position, f"{ast.unparse(site.node.args[position])} + 1000")
        # The receiver of a sparse exchange does not know that it should receive, and goes on.
        classes = {"unmatched message", "starvation"} if site.name == "issend" else {"unmatched message"}
        return Expectation(classes, culprit, ranks)

    def wrong_destination(self):
        if self.size < 3:
            return None
        site, culprit = self.choose(SENDS - {"issend"})
        if site is None:
            return None
        position = PEER[site.name]
        self.changed(site, culprit, position, f"({ast.unparse(site.node.args[position])} + 1) % size")
        return Expectation({"unmatched message", "deadlock"}, culprit)

    def wrong_origin(self):
        if self.size < 3:
            return None
        site, culprit = self.choose(RECEIVES)
        if site is None:
            return None
        position = PEER[site.name]
        # The rank waits for a message that the other rank need not send: either may be meant. `source` is not known before.
        ranks = {culprit, (self.peer(site, culprit) + 1) % self.size} if "source" not in ast.unparse(site.node.args[position]) else set(range(self.size))
        self.changed(site, culprit, position, f"({ast.unparse(site.node.args[position])} + 1) % size")
        return Expectation({"unmatched message", "deadlock"}, culprit, ranks)

    def short_receive(self):
        site, culprit = self.choose(RECEIVES)
        if site is None:
            return None
        self.changed(site, culprit, len(site.node.args) - 1, "n // 2")
        return Expectation({"crash"}, culprit, objects=False)

    def wrong_argument(self, names, position=None, value=None, **keywords):
        # With two ranks, the communicators that the programs split have one member, or the same ones as the world.
        site, culprit = self.choose(names, lambda site: self.size > 2 or not any(one.arg == "comm" and one.value.id in ("row", "column") for one in site.node.keywords))
        if site is None:
            return None
        self.changed(site, culprit, position, value, **keywords)
        # Reductions that differ are reported even if the job goes on; of other collectives only what stops the job.
        reduction = site.name in REDUCTIONS
        return Expectation({"mismatch"}, culprit, may_end=not reduction, pace=300 if reduction else 0, objects=False)

    def wrong_root(self):
        return self.wrong_argument(ROOTED, root="1")

    def wrong_count(self):
        return self.wrong_argument(REDUCTIONS | {"bcast"}, 0, "2 * n")

    def wrong_type(self):
        return self.wrong_argument(REDUCTIONS | {"bcast"}, type="float")

    def wrong_operation(self):
        return self.wrong_argument(REDUCTIONS, op="max")

    def wrong_communicator(self):
        site, culprit = self.choose({"barrier", "allreduce", "bcast", "reduce"}, lambda site: not site.node.keywords)
        if site is None:
            return None
        self.changed(site, culprit, comm="self", **({"root": "0"} if site.name in ROOTED else {}))
        return Expectation({"mismatch", "deadlock"}, culprit, may_end=site.name == "bcast", objects=site.name not in ROOTED)

    def loop(self):
        """The function, the list of statements and the index of the loop over steps."""
        main = self.tree.body[-1]
        for index, node in enumerate(main.body):
            if isinstance(node, ast.For):
                return main.body, index
        return None, None

    def early_return(self):
        where, index = self.loop()
        if where is None:
            return None
        culprit = self.random.randrange(self.size)
        choice = parsed(f"if {condition(culprit, self.step)}:\n    note()\n    break")
        marked(choice.body[1])
        where[index].body.insert(0, marked(choice))
        return Expectation({"mismatch", "unmatched message", "deadlock"}, culprit)

    def calls_in(self, node):
        """The names of the calls that a statement makes, itself and in the function that it calls."""
        functions = {function.name: function for function in self.tree.body}
        names = {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
        for name in names & set(functions):
            names |= {part.func.id for part in ast.walk(functions[name]) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
        return names

    def extra_step(self):
        where, index = self.loop()
        if where is None:
            return None
        # A rank that only produces does not notice.
        culprit = self.random.randrange(1, self.size)
        taken = []
        for node in where[index].body:
            taken += [node] if not isinstance(node, ast.If) else node.body if evaluate(node.test, culprit, self.size, STEPS) else node.orelse
        if not any(self.calls_in(node) & NEED_OTHERS for node in taken):
            return None  # a step of its own, which harms nobody
        more = parsed(f"if rank == {culprit}:\n    note()\n    step = steps")
        more.body += [copy.deepcopy(node) for node in where[index].body if not (isinstance(node, ast.Expr) and node.value.func.id == "hook")]
        where.insert(index + 1, marked(more))
        return Expectation({"mismatch", "unmatched message", "deadlock"}, culprit, set(range(self.size)))

    def wrong_order(self):
        where, index = self.loop()
        if where is None:
            return None
        body = where[index].body
        pairs = [k for k in range(len(body) - 1) if all(isinstance(body[j], ast.Expr) and self.calls_in(body[j]) & calls.COLLECTIVE for j in (k, k + 1))]
        if not pairs:
            return None
        k, culprit = self.random.choice(pairs), self.random.randrange(self.size)
        choice = parsed(f"if {condition(culprit, self.step)}:\n    note()\nelse:\n    pass")
        choice.body += [marked(copy.deepcopy(body[k + 1])), marked(copy.deepcopy(body[k]))]
        choice.orelse = [body[k], body[k + 1]]
        body[k:k + 2] = [marked(choice)]
        # Broadcasts and reductions need not wait for all members, so another order need not stop the job.
        return Expectation({"mismatch", "deadlock"}, culprit, may_end=True)

    def is_send_cycle(self):
        """With long messages, all ranks of this pattern wait in their first send."""
        return ast.unparse(self.tree.body[0].body[0]) == "send(right, 10 + step, n)"

    def send_cycle(self):
        if not self.is_send_cycle():
            return None
        shift = self.tree.body[0]
        shift.body.insert(0, parsed(f"if step == {self.step}:\n    note()\n    n = 60000"))
        for node in shift.body[1:]:
            marked(node)
        return Expectation({"deadlock"}, 0, set(range(self.size)))

    def lost_shutdown(self):
        return self.of_master("send(source, 2, n)", "source")

    def one_result_too_many(self):
        serve = self.tree.body[0]
        if serve.name != "serve":
            return None
        loop = next(node for node in serve.body if isinstance(node, ast.While))
        loop.test = ast.parse("done < jobs + 1", mode="eval").body
        loop.body.insert(0, parsed("if done == jobs:\n    note()"))
        marked(loop.body[1])
        # Each rank waits: the master for any worker, the workers for all.
        return Expectation({"deadlock", "unmatched message"}, 0, set(range(self.size)))

    def of_master(self, text, variable):
        for node in ast.walk(self.tree):
            for name in ("body", "orelse"):
                statements = getattr(node, name, [])
                for index, one in enumerate(statements):
                    if isinstance(one, ast.Expr) and ast.unparse(one) == text:
                        choice = parsed(f"if {variable} == {self.random.randrange(1, self.size)}:\n    note()\nelse:\n    pass")
                        choice.orelse = [marked(one)]
                        statements[index] = marked(choice)
                        return Expectation({"unmatched message", "deadlock"}, 0)
        return None


MUTATIONS = [name for name in vars(Mutator) if not name.startswith("_") and
             name not in ("choose", "changed", "skip", "peer", "wrong_argument", "loop", "is_send_cycle", "of_master", "calls_in")]
