"""One answer to one question: does this function keep this claim?

`dpaudit.judge` (`judging`) looks for the pair on which the function is most sensitive, proves or disproves what it can,
and audits what it cannot. What it says is a `Judgement` (`judgement`).
"""

from dpaudit.judgements.judgement import Judgement, load_judgement
from dpaudit.judgements.judging import judge

__all__ = ["Judgement", "judge", "load_judgement"]
