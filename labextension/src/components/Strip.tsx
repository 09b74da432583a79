import * as React from 'react';

import { useAttempt, useDesk } from '../desk';
import { canUnpark } from '../standing';
import { LeaseView, RequestView } from '../wire';
import { Action } from './Action';
import { Refused, Sentence } from './Text';

interface StripProps {
  readonly lease: LeaseView;
  /** Its way back, once it is asked for. */
  readonly request: RequestView | null;
}

/** Above a notebook whose GPU is parked: what the next cell will do, before it looks like a hang. */
export function Strip(props: StripProps): React.JSX.Element {
  const { api, words } = useDesk();
  const { attempt, isBusy, refusal } = useAttempt();
  const { lease, request } = props;
  return (
    <div className="gpb-Strip-body" role="status">
      <span className="gpb-Dot gpb-mod-parked" aria-hidden="true" />
      {request === null ? (
        <span>{words.nextCellReturns}</span>
      ) : (
        <span>
          {words.nextCellWaits} <Sentence of={request} />
        </span>
      )}
      {request === null && canUnpark(lease) && (
        <Action
          label={words.unpark}
          isDisabled={isBusy}
          onClick={() => attempt(() => api.unpark(lease))}
        />
      )}
      {request !== null && (
        <Action
          label={words.leave}
          isDisabled={isBusy}
          onClick={() => attempt(() => api.cancel('requests', request.id))}
        />
      )}
      <Refused text={refusal} />
    </div>
  );
}
