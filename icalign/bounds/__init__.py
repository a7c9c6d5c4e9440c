r"""Error bounds in closed form, and the temperatures that meet a tolerance.

Each formula is written once for numbers and for sympy: called with symbols it is the right-hand side that a chapter
proves, called with floats it is the number that a construction promises. So the bound that is proved is the bound
that runs. There is a module for each chapter; ``elementary`` has what all of them use.
"""

from .block import bradley_terry_error, bradley_terry_rounding, elimination_mask, flag_rounding, vanishing_epsilon
from .causal import (
    causal_error,
    causal_field_margins,
    causal_margins,
    causal_rounding,
    mask_crowd,
    mask_holds,
    mask_margin,
    mask_miss,
    mask_rounding,
    mask_temperatures,
    stop_logit,
)
from .causal_depth import (
    causal_depth_ceiling,
    causal_depth_error,
    causal_depth_error_at,
    causal_depth_margins,
    causal_depth_rounding,
    mask_slip,
    masks_are_exact,
    prefix_logit,
    seen_crowd,
    slot_rounding,
    unseen_crowd,
)
from .causal_naive import causal_naive_error, causal_naive_rounding, sure_elimination
from .causal_queries import (
    causal_filters,
    causal_queries_crowd,
    causal_queries_error,
    causal_queries_field_margins,
    causal_queries_hold,
    causal_queries_rounding,
    causal_queries_slip,
    fetch_error,
    fetch_filter,
    increments_length,
    joint_causal_error,
    joint_causal_rounding,
    joint_causal_shares,
)
from .depth import (
    comparison_is_exact,
    comparison_rounding,
    constant_depth_error,
    constant_depth_mask,
    constant_depth_rounding,
    crowds_of_all_ranks,
    own_mean_rounding,
)
from .elementary import digits, gap_shortfall, radius_excess, share, unit_roundoff
from .elsewhere import direct_spread, noise_shift, top_error
from .field import field_error, field_rounding, field_spacing, score_range, score_spread, square_error, square_rounding
from .gradient import gradient_rounding, loss_rounding, radius_rounding, smoothness
from .many_steps import commit_rounding, expansion, many_steps_gap, many_steps_growth
from .plackett_luce import (
    crowd_rounding,
    field_crowd,
    flags_are_exact,
    plackett_luce_error,
    plackett_luce_rounding,
    plackett_luce_temperatures,
    top_deviation,
    winner_crowd,
)
from .positions import first_collision, most_positions, position_rounding, reciprocal_rounding, rising_rounding
from .queries import (
    coupled_error,
    field_strangers,
    filtered_rounding,
    flags_are_exact_among,
    own_terms_error,
    own_terms_margins,
    own_terms_temperatures,
    selecting_slack,
    stranger_error,
    strangers,
)
from .query_selection import (
    critical_ratio,
    query_crowd,
    query_leak,
    query_selection_error,
    query_selection_rounding,
    query_temperature_floor,
    query_temperatures,
)
from .selection import attention_rounding, crowd, crowd_in_steps, selection_temperature, selection_temperature_all_gaps
from .sink import (
    sink_coefficients,
    sink_curvature,
    sink_error,
    sink_leak,
    sink_logit,
    sink_order,
    sink_rounding,
    sink_spacing,
)
from .two_layers import (
    filtered_tails_rounding,
    grid_graze,
    grid_points,
    grid_rounding,
    ranked_filter,
    ranked_stranger_error,
    two_layers_rounding,
)
